"""Certificates: why a workload waits or is evicted, and, for who asks, what would help.

- certificate: `certificate()`, for either form of work
- gangs, workloads: the two forms
- holders: who has what is missing
- sentences: the dominant reason in words
- evictions: `eviction_certificate()`
- remedies: `remedies()`, each found and shown by planning
- mending: more quota, more nodes, several things together
- patient: a workload that waits, and what is tried on it
- source: what people declared, changed step by step
- change: the steps that concern gangs and nodes
- growth: `explain_growth()`, why a gang that runs does not grow
- judge: whether a workload starts
- turns: when a workload in the form of Kueue is looked at
"""
