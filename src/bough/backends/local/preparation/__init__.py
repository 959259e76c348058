"""From what was submitted to a command that can be run."""
