"""Bough: hierarchical GPU quota and elastic gang scheduling that can say why.

Nothing is imported here, so that the command line starts fast.
"""
