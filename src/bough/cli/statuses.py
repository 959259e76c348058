"""The statuses that can be asked for. Must not know what they mean.

The words are those of the model, which is too heavy to import for a command; a test compares them.
"""

from __future__ import annotations

from bough.cli.server_commands import Capitals

_FAILURES = (
    "FAILED",
    "FAILED_SERVER_ERROR",
    "FAILED_EXEC_TIMEOUT",
    "FAILED_QUEUE_TIMEOUT",
    "FAILED_CANCELED",
    "FAILED_BACKEND_ERROR",
    "FAILED_IMAGE_PULL",
    "FAILED_EVICTED",
    "FAILED_START_ERROR",
    "FAILED_START_TIMEOUT",
    "FAILED_PREEMPTED",
)
WORKFLOW_STATUSES = Capitals(
    ("PENDING", "RUNNING", "WAITING", "COMPLETED", "FAILED_SUBMISSION", *_FAILURES)
)
TASK_STATUSES = Capitals(
    (
        "SUBMITTING",
        "WAITING",
        "PROCESSING",
        "SCHEDULING",
        "INITIALIZING",
        "RUNNING",
        "COMPLETED",
        "RESCHEDULED",
        *_FAILURES,
        "FAILED_UPSTREAM",
    )
)
