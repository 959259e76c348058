"""Frozen types that every layer shares: what things are, never what is decided about them."""
