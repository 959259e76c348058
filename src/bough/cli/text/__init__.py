"""Answers as text for people. Nothing here asks a server or reads a file."""
