"""The subgroup tree of a gang: one predicate, what is needed, what is surplus, what goes next.

    order           which child comes first, which pod
    tree            a gang laid out for counting
    predicate       has a node what it needs; complete, stale, able to start, short of what
    demand          what to start next
    release         what to give back next, what is not preemptible
    outline         the tree that a PodGroup's list stands for, also a broken one
    validation      the rules that a PodGroup and its pods must obey
    topology        what a topology constraint means
    normalisation   a PodGroup as written into the one gang that it means
    priority        what a priority stands for, who is preemptible
    queueing        whether its queue takes gangs at all

Must not know nodes, usage or other gangs.
"""
