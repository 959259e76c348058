"""Offline commands: files in, plain data out (dicts, lists, text, integers), ready for JSON.

The command line finds a tool by its name and only renders what the tool answers.
"""
