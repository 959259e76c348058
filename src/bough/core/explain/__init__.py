"""Certificates: why a workload waits or is evicted, and, for who asks, what would help.

- certificate: `certificate()`, for either form of work
- gangs, workloads: the two forms
- holders: who has what is missing
- sentences: the dominant reason in words
- evictions: `eviction_certificate()`
- remedies: `remedies()`, each found and shown by planning
- change: a remedy applied to a snapshot
- judge: whether a workload starts
- turns: when a workload in the form of Kueue is looked at
"""
