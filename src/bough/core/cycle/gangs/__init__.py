"""The passes over gangs: who is served when, what starts, what is taken back, what grows.

- tariff: what a pod counts against a queue's quota
- claim: one gang in the working copy
- world: the working copy: ledgers, places, claims
- contest: whose turn it is when idle capacity is shared by weight
- start: one gang: gates, a place, or victims
- reclaim: who may be evicted for whom, and in what order
- reserve: what a gang that waits for a place keeps from others
- grow: optional units, while room is left
- stale: gangs that run with less than they need
"""
