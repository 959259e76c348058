"""`bough kube schedule` on a bed, with exactly the rights that `bough kube install` prints.

scheduled    a bed with these definitions, and schedulers on it
kills        schedulers that are killed and stopped at random, judged by the apiserver
soak_kills   the same for far longer, which `make soak` runs
"""
