"""Deciding: pure, integers only, nothing of the world. Same input, same output, byte for byte."""
