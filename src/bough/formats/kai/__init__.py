"""Objects of KAI.

objects     finds the reader of each object
podgroup    PodGroup
pod         Pod, as a member of a gang
queue       Queue and Topology
"""
