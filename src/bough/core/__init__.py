"""Deciding: pure, integers only, nothing of the world. Same input, same output, byte for byte.

A snapshot and a policy enter by `cycle.plan.plan`; a plan leaves. `explain` says why.

- quota: the quota tree, its arithmetic, and which declarations are valid
- gang: the subgroup tree of a gang: what it needs, what is surplus
- place: nodes, topology domains, the search for a place
- cycle: one scheduling cycle
- explain: certificates and remedies
- undo: the undo log that all of them share
- names: which names are allowed
"""
