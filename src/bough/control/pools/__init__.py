"""Pools, subpools and cohorts: their quotas, and the quota tree that they make.

- pools: top-level pools: create, change, rename, delete, show
- subpools: the same for subpools, with their states
- cohorts: the same for cohorts above pools
- pool_fields: pools as they are sent and shown: field names, old spellings, checks
- pool_data_limits: how much data a pool keeps, and for how long
- pool_setup: everything the quota tree is made of, read at one moment
- pod_placement: what pod templates let tasks of a pool select and tolerate; pure
- quota_tree: the quota tree that it makes; pure
- kueue_tree: the same tree as Kueue has one, and what it cannot say there; pure
- quota_effects: a change, made or only planned, and the debts it makes or ends
- waiting_work: what a new division does to work that waits
- subpool_drain: archives a subpool that is being deleted once it is empty
- quotas: what pools have, use and have left
- node_shares: what the nodes of the tree take and could have, as the loop tells it
- stand_in_nodes: what stands for clusters in which another scheduler decides places
- startable_gpus: how much can really start now
- pool_words: explanations in words of pools: queues and flavors as people know them

In: requests of administrators. Out: rows with their version raised, so that no plan made before is
applied; the tree for snapshots.
"""
