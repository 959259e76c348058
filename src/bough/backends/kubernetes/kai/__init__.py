"""A cluster in which KAI decides: its queues follow Bough's, and what Bough admits it places.

kai_objects      Queue, Topology and PriorityClass, as far as their fields matter
wanted_objects   the objects that a quota tree makes: pure
queue_changes    what to change to have them, and in which order: pure
queue_manifest   the objects as they are sent
queue_keeper     reads, changes and reports, under the lease
"""
