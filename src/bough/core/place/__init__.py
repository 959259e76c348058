"""Where pods go: nodes as bits, topology domains, the search for a place for a whole gang.

Modules in the order in which to read them:

- placer: the object that a scheduling cycle works with
- cluster: the pods on the nodes, as they are and as they would be
- index: what is free on each node; with bits, columns, history, magnitudes, shapes and matching
- choice: which node a pod gets
- domains: topologies as masks of nodes
- parts: a demand of a gang, prepared for the search
- search: all or nothing, with backtracking; with layout, options, outlook, bags, filling and kinds
- result: what comes out
- reasons: why there is no place
"""
