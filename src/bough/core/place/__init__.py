"""Where pods go: nodes as bits, topology domains, the search for a place for a whole gang.

Modules in the order in which to read them:

- placer: the object that a scheduling cycle works with
- cluster: the pods on the nodes, as they are and as they would be
- result: what comes out of a search
- reasons: why there is no place

What is free

- node_index: what is free on each node
- node_bits: sets of nodes as the bits of integers
- node_flavors: which flavor the use of a node counts against
- columns: resources as rows of integers
- pod_shapes: pods that ask for the same, and the nodes that cannot take them
- node_matching: which nodes a pod may use at all
- free_magnitudes: nodes by the order of magnitude of what they have free
- node_changes: what happened to the nodes, for readers that keep something derived from them
- node_choice: which node a pod gets
- domains: topologies as masks of nodes

The search

- demand_parts: a demand of a gang, prepared for the search
- search: all or nothing, with backtracking
- domain_options: which domains are tried for a constraint, and in which order
- pruning: what need not be tried, and when a search is not worth continuing
- pod_bundles: pods that share one set of nodes
- bundle_filling: the pods of a bundle onto nodes
- near_domains: how near domains are to those that are in use
"""
