"""The process that starts the tasks of one gang together, and holds them to their end."""
