"""Shared quota: the edges of the tree, the accounts of its nodes, shares, effects of changes.

Declared cohorts and queues enter by `tree.QuotaTree.of`; refusals with their inequality leave.
Modules in the order in which to read them:

- account: the arithmetic of one node, flavor and resource
- tree_shape: parents, children, implicit cohorts, cycles
- tree: nodes and accounts together: admission, usage, changes while work is running
- guarantee: the tree of what is guaranteed, in which nothing is borrowed and promises are kept
- usage: how much an admission counts against its queue
- taken_share: the weighted share of a node
- fair_now: what each node could have if idle capacity were divided by weight, for people
- division: what each of several nodes may have of what all ask for
- fairness: the rules that follow: which node goes first, which gives back, and where that stops
- fair_share: the fair share of every node of a tree
- reclaim: what a gang may reclaim from other queues where fair shares decide
- minimum_runtimes: how long a running gang is safe from others
- change_effects: what a change of the tree would do, before it is made
- fair_tree: queues with quota, limit and weight as nodes of the same tree; which take gangs
- validation: which cohorts and queues may be declared
- workload_rules: which flavors, local queues and workloads may be declared
- references: whether declared objects fit together
"""
