"""What runs tasks. Each folder implements the `Backend` protocol of `model.backend`.

The server's `hosting` opens one of them; the scheduler starts and stops attempts by it.

local           processes of this machine
virtual         nothing runs; for demonstrations and tests
offered_gpus    what both offer where there are no real GPUs
"""
