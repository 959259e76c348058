"""What objects of Kueue and KAI share.

metadata    name, namespace, labels, creation time
pods        what a pod asks for
nodes       Node objects
"""
