"""Certificates: why a gang waits or is evicted and, on request, what would help.

Everything here is found by playing cycles: nothing has an opinion of its own on what starts.
Modules in the order in which to read them:

- certificate: `certificate()`, why one gang is where it is; and of all that wait, for one cycle
- waiting: the certificate of a gang that waits: its reason, and the facts behind it
- flavor_options: why each flavor of a queue cannot be had
- compared_shares: which shares of the tree stand against a gang
- node_shares: what every node takes and could have, by the shares that a policy compares
- holders: which gangs have what is missing, and whether it may be taken
- evictions: `eviction_certificate()`: for which gang, at which level, by which rule
- growth: `explain_growth()`: what a gang that runs still wants, and why it cannot grow
- judge: whether a gang starts in a changed world; plans are counted
- kueue_turns: in which cycle a gang is looked at, where heads are judged together
- remedies: `remedies()`: what would let a gang start, each shown by planning it
- remedy_trials: a gang that waits, and what is tried on it
- possible_steps: what could be changed: what is held, minimums, weights, nodes to add
- capacity_remedies: more quota, more nodes, several things together
- declared_snapshot: what people declared, changed step by step, and the snapshot that it makes
- changed_snapshot: the steps that concern gangs and nodes
- sentences: reasons and remedies in words
"""
