"""The command line: arguments and text. It finds commands and tools lazily, by name.

Imports only the errors, the standard library and click, so that the program starts fast.
"""
