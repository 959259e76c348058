"""A cluster in which KAI decides: its queues follow Bough's, and what Bough admits it places.

kai_objects      Queue, Topology and PriorityClass, as far as their fields matter
wanted_objects   the objects that a quota tree makes: pure
queue_changes    what to change to have them, and in which order: pure
queue_manifest   the objects as they are sent
queue_keeper     reads, changes and reports, under the lease
backend          the backend: admitted groups become pods that KAI places
gang_manifest    the PodGroup of a group, and what its pods say: pure
pod_groups       makes PodGroups before their pods, and removes them with the last
evictions        tells what KAI evicted from what people deleted
"""
