"""What a task sees of the machine, and how much of it it can use."""
