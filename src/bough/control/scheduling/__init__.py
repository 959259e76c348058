"""Deciding again and again: observe, snapshot, plan, apply, tell the backends.

loop               one cycle after another, woken by changes or a tick; one server at a time
observation_cache  what a backend has said before, so that only news is looked up
snapshot           the store at one moment as a Snapshot for the core; keeps what did not change
live_workflows     unfinished workflows in memory, in step with the store
apply_plan         a plan becomes true in one transaction; a stale one is discarded
outbox             what was decided is sent to the backends, again until they have it
timeouts           groups that wait or run for longer than their workflow allows
explanation        why a workflow waits, shown by planning; nothing of it is applied
pool_remedies      what would help, in the words of pools

In: rows of the store, observations of backends. Out: rows, events, outbox messages.
"""
