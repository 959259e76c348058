"""Workflows, as people write them."""
