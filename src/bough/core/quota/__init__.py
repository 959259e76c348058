"""Shared quota: the edges of the tree, the accounts of its nodes, shares, effects of changes."""
