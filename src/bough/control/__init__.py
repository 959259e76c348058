"""What can be done: use cases, each in one transaction with its rules, and the scheduler's loop.

Every use case takes the site (store, clock, ids), the actor, and what is asked. It asks `access`
whether the actor may, checks the rules while the pool is locked, writes the change together with
its audit, history and events, and wakes the scheduler afterwards.
"""
