"""The subgroup tree of a gang: one predicate, what is needed, what is surplus, what goes next.

    order        which child comes first, which pod
    tree         a gang laid out for counting
    predicate    has a node what it needs; complete, stale, able to start, short of what
    demand       what to start next
    release      what to give back next, what is not preemptible

Must not know nodes, queues or other gangs.
"""
