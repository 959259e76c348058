"""Objects of Kueue.

organisation    finds the reader of each object
quota           Cohort, ClusterQueue, ResourceFlavor
workload        LocalQueue, Workload
"""
