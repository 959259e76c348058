"""The settings that an administrator can change while the server runs, with their defaults.

Must not know where they are kept.
"""

from __future__ import annotations

import msgspec

DAY_S = 24 * 60 * 60


def _default_exit_actions() -> dict[str, str]:
    """What was preempted is tried again."""
    return {"RESCHEDULE": "3006"}


class WorkflowSettings(msgspec.Struct, frozen=True):
    """The workflow configuration. Durations are seconds."""

    #: How often a subpool that is being deleted is looked at.
    subpool_drain_check_interval_s: int = 15 * 60
    max_num_tasks: int = 1_000
    #: For one user at a time; `None`: no limit.
    max_num_workflows_per_user: int | None = None
    max_retry_per_task: int = 0
    #: For preemptions alone; `None`: as often as need be.
    max_preemption_retries: int | None = None
    default_exec_timeout_s: int = 60 * DAY_S
    default_queue_timeout_s: int = 60 * DAY_S
    #: The exit actions of tasks for which neither the task nor the pool says otherwise.
    default_exit_actions: dict[str, str] = msgspec.field(default_factory=_default_exit_actions)
