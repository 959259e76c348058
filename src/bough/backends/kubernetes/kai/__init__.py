"""A cluster in which KAI places pods: its queues follow Bough's, and Bough only admits.

kai_types       Queue, Topology and PriorityClass, reduced to the fields that we use
wanted_objects  the objects that a quota tree requires: pure
object_changes  the changes needed to get there, and their order: pure
manifests       the objects in the form that is sent
queue_keeper    reads, changes and reports, under the lease
backend         the backend: admitted groups become pods that KAI places
gang_manifest   the PodGroup of a group, and what its pods must say: pure
pod_groups      creates PodGroups before their pods, and deletes them with the last
evictions       tells pods that KAI evicted from pods that people deleted
"""
