"""Workflows: read, admit, store, change, show."""
