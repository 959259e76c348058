"""The subgroup tree of a gang: one predicate, what is needed, what is surplus, what goes next.

Modules in the order in which to read them:

- tree: a gang laid out for counting
- sufficiency: whether a node has what it needs; complete, stale, able to start, short of what
- order: which child comes first, and which pod
- demand: what to start next
- release: what to give back next, and what is not preemptible
- priority: what a priority stands for, and which gangs are preemptible
- outline: the tree that a PodGroup's list stands for, also a broken one
- validation: the rules that a PodGroup and its pods must obey
- problem_list: the problems of one object, as they are found
- topology: what a topology constraint means
- from_pod_group: a PodGroup as written into the one gang that it means
- from_workload: a Workload of Kueue into a gang whose leaves are its pod sets
"""
