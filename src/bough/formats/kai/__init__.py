"""Objects of KAI.

Documents go in by `objects.read_kai`; model types and problems come out.

objects               finds the reader of each object
pod_group             PodGroup
kubernetes_pod_group  PodGroup and Workload of Kubernetes itself
pod                   Pod, as a member of a gang
queue                 Queue and Topology
"""
