"""What objects of Kueue and KAI share.

Readers of whole objects call these with a `Fields` cursor.

metadata    name, namespace, labels, creation time
pods        what a pod asks for
nodes       Node objects
"""
