"""Objects as an apiserver sends them, read into the same model types as objects in files.

A watch sends many lines, and most of their content does not matter: only the fields that do are
decoded, and fields that a newer apiserver adds are skipped. What an object means is decided by the
same code as for files.

objects     pods, nodes and KAI's objects, reduced to the fields that matter
pods        Pod
nodes       Node and Namespace
owners      owners of pods (Jobs and the like), reduced to what says how many pods they want
kai         PodGroup (of KAI and of Kubernetes), Queue, Topology and PriorityClass
"""
