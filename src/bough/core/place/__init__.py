"""Where pods go: nodes as bits, topology domains, the search for a place for a whole gang.

Modules in the order in which to read them:

- placer: the object that a scheduling cycle works with
- cluster: the pods on the nodes, as they are and as they would be
- result: what comes out of a search
- reasons: why there is no place

What is free

- index: what is free on each node
- bits: sets of nodes as the bits of integers
- node_flavors: which flavor the use of a node counts against
- columns: resources as rows of integers
- shapes: pods that ask for the same, and the nodes that cannot take them
- matching: which nodes a pod may use at all
- magnitudes: nodes by the order of magnitude of what they have free
- history: what happened to the nodes, for readers that keep something derived from them
- choice: which node a pod gets
- domains: topologies as masks of nodes

The search

- parts: a demand of a gang, prepared for the search
- search: all or nothing, with backtracking
- options: which domains are tried for a constraint, and in which order
- pruning: what need not be tried, and when a search is not worth continuing
- pod_bundles: pods that share one set of nodes
- filling: the pods of a bundle onto nodes
- neighbours: how near domains are to those that are in use
"""
