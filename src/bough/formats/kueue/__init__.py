"""Objects of Kueue.

Documents go in by `organisation.read_organisation`; model types and problems come out.

organisation    finds the reader of each object
quota           Cohort, ClusterQueue, ResourceFlavor
write_quota     the tree as objects again
workload        LocalQueue, Workload
"""
