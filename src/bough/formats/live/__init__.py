"""Objects as an apiserver sends them, into the same model types as objects in files.

Lines of a watch are many, and most of what they say does not matter: only fields that do are
decoded, and what a newer apiserver adds is passed over. What an object means is decided where the
readers of files decide it.

objects     pods, nodes and the objects of KAI, as far as their fields matter
pods        Pod
nodes       Node and Namespace
owners      what owns pods (Jobs and the like), as far as it says how many of them there are
kai         PodGroup (of KAI and of Kubernetes), Queue, Topology and PriorityClass
"""
