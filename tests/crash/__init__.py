"""What is needed to kill servers under load, and the laws that must hold whatever was killed."""
