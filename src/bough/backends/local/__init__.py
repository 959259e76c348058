"""The local backend: tasks are processes of this machine."""
