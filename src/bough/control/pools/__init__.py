"""Pools, subpools and cohorts: their quotas, and the quota tree that they make.

pools, subpools, cohorts   create, change, delete, list; each change says what it does
pool_fields                pools as they are sent and shown: field names, old spellings, checks
pool_config                everything the quota tree is made of, read at one moment
quota_tree                 the quota tree that it makes; pure
quota_effects              what a change does to the tree: who comes into debt, who out of it
dry_run                    a change made, or only planned and rolled back
waiting_work               what a new division does to work that waits
subpool_drain              archives a subpool that is being deleted once it is empty
quotas                     what pools have, use and have left
startable                  how much can really start now
pool_status                whether a pool can run work
queue_names                queues of the tree by the names of their pools

In: requests of administrators. Out: rows with their version raised, so that no plan made before is
applied; the tree for snapshots.
"""
