"""Files of tasks: where they are kept, and how they are copied and removed."""
