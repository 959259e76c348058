"""What runs tasks. Each folder implements the `Backend` protocol of `model.backend`.

The server's `backend_hosts` opens one of them; the scheduler starts and stops attempts by it.

local           processes of this machine
kubernetes      pods of a cluster
virtual         nothing runs; for demonstrations and tests
logs            writing and reading logs of attempts
placeholders    `{{output}}` and the like
offered_gpus    what local and virtual offer where there are no real GPUs
"""
