"""Where pods go: nodes as bits, topology domains, the search for a place for a whole gang.

    index        what is free on each node
                 (with bits, columns, history, magnitudes, shapes, matching)
    choice       which node a pod gets
    domains      topologies as masks of nodes
    parts        a demand of a gang, prepared for the search
    search       all or nothing, with backtracking
                 (with layout, options, outlook, bags, filling, kinds)
    result       what comes out
    reasons      why there is no place
    cluster      the pods on the nodes, as they are and as they would be
    placer       the object that a scheduling cycle works with

Must not know queues and quotas, nor the order in which gangs are served.
"""
