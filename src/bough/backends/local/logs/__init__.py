"""What tasks write, on the disk and back."""
