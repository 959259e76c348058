"""Pools, subpools and cohorts: their quotas, and the quota tree that they make.

- pools: top-level pools: create, change, rename, delete, show
- subpools: the same for subpools, with their states
- cohorts: the same for cohorts above pools
- pool_fields: pools as they are sent and shown: field names, old spellings, checks
- pool_config: everything the quota tree is made of, read at one moment
- pod_placement: what pod templates let tasks of a pool select and tolerate; pure
- quota_tree: the quota tree that it makes; pure
- quota_effects: a change, made or only planned, and the debts it makes or ends
- waiting_work: what a new division does to work that waits
- subpool_drain: archives a subpool that is being deleted once it is empty
- quotas: what pools have, use and have left
- startable: how much can really start now
- queue_names: queues of the tree by the names of their pools

In: requests of administrators. Out: rows with their version raised, so that no plan made before is
applied; the tree for snapshots.
"""
