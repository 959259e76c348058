"""The passes over gangs: who is served when, what starts, what is taken back, what grows.

- tariff: what a pod counts against a queue's quota
- claim: one gang in the working copy
- world: the working copy: ledgers, places, claims
- contest: whose turn it is when idle capacity is shared by weight
- lines: who stands where in the line of each queue
- wants: what a gang wants, and in which ways it may be had
- start: one gang: gates, a place, or victims
- reclaim: who may be evicted for whom, and in what order
- taking: which of them are taken
- room: whether that is enough
- reserve: what a gang that waits for a place keeps from others
- grow: optional units, while room is left
- outcome, reasons: what was decided, and why somebody waits
- memo: what one cycle leaves for the next
- passes: all of it, in order
"""
