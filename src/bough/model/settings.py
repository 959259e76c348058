"""The settings that an administrator can change while the server runs, with their defaults."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from bough.model.labels import LabelsConfig

DAY_S = 24 * 60 * 60


class VanishedNode(StrEnum):
    """What becomes of the attempts on a node that its backend no longer offers."""

    #: They have ended, and by default are tried again on another node.
    RESCHEDULE = "reschedule"
    #: They stay as they are, and keep their GPUs, until the backend reports them.
    LEAVE = "leave"


def _default_exit_actions() -> dict[str, str]:
    """What was lost with its backend or its node, or was preempted, is tried again."""
    return {"RESCHEDULE": "3001,3004,3006"}


class WorkflowSettings(msgspec.Struct, frozen=True):
    """The workflow configuration. Durations are seconds."""

    #: How often a subpool that is being deleted is looked at.
    subpool_drain_check_interval_s: int = 15 * 60
    max_num_tasks: int = 1_000
    #: For one user at a time; `None`: no limit.
    max_num_workflows_per_user: int | None = None
    max_retry_per_task: int = 0
    #: The most that a task may ask for itself.
    max_asked_retries: int = 10
    #: For preemptions alone; `None`: no limit.
    max_preemption_retries: int | None = None
    #: For attempts that their backend lost: the task itself may be what crashes its machine.
    max_lost_retries: int | None = 10
    #: How long an attempt that is told to end may take before it is killed. What ends for others
    #: has the grace of the policy instead.
    termination_grace_s: int = 30
    vanished_node: VanishedNode = VanishedNode.RESCHEDULE
    default_exec_timeout_s: int = 60 * DAY_S
    default_queue_timeout_s: int = 60 * DAY_S
    #: How long after their end workflows are archived; `None`: never.
    archive_after_s: int | None = None
    #: The exit actions of tasks for which neither the task nor the pool says otherwise.
    default_exit_actions: dict[str, str] = msgspec.field(default_factory=_default_exit_actions)
    #: Which labels workflows should have.
    labels_config: LabelsConfig = LabelsConfig()


class ServiceSettings(msgspec.Struct, frozen=True):
    """What holds for all requests: which clients are too old, how long tokens may be valid."""

    #: The version that existing clients should have, as `6.4.0`; `None`: that of the server.
    latest_version: str | None = None
    #: Clients that say that they are older are refused; `None`: none is.
    min_supported_version: str | None = None
    #: Where people get a newer one; `None`: nothing is said about it.
    client_install_url: str | None = None
    #: How long a token may be valid; `None`: as long as its maker says.
    max_token_duration_s: int | None = None
