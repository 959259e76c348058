"""What runs the tasks, one folder each; all meet model.backend and none knows another."""
