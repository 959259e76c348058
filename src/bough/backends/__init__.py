"""What runs tasks. Each folder implements the `Backend` protocol of `model.backend`.

local           processes of this machine
virtual         nothing runs; for demonstrations and tests
offered_gpus    what both offer where there are no real GPUs
"""
