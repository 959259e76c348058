"""Shared quota: the edges of the tree, the accounts of its nodes, shares, and effects of changes."""
