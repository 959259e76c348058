"""What is written down about changes: audit, history of configuration, events, messages to send.

Audit and events are only ever added to.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from bough.model.pool import Json

#: The actor of what no user asked for: the drain monitor, the scheduler.
SYSTEM = "system"


class AuditEntry(msgspec.Struct, frozen=True):
    """Who changed what, when, from where, before and after."""

    at_ms: int
    actor: str
    action: str
    #: What was changed, as `pool/team` or `workflow/hello-1`.
    subject: str
    origin: str = ""
    token: str | None = None
    before: Json = None
    after: Json = None
    number: int = 0


class ConfigType(StrEnum):
    """The kinds of configuration; revisions are counted within each."""

    SERVICE = "SERVICE"
    WORKFLOW = "WORKFLOW"
    #: How cycles decide.
    POLICY = "POLICY"
    POOL = "POOL"
    SUBPOOL = "SUBPOOL"
    COHORT = "COHORT"
    ROLE = "ROLE"
    BACKEND = "BACKEND"
    BACKEND_TEST = "BACKEND_TEST"
    POD_TEMPLATE = "POD_TEMPLATE"
    GROUP_TEMPLATE = "GROUP_TEMPLATE"
    RESOURCE_VALIDATION = "RESOURCE_VALIDATION"


class Difference(msgspec.Struct, frozen=True):
    """One field that a change touched."""

    field: str
    before: Json = None
    after: Json = None


class Revision(msgspec.Struct, frozen=True):
    """One change of one configured object."""

    config_type: ConfigType
    revision: int
    #: The object; for SUBPOOL its canonical name.
    name: str
    username: str
    created_ms: int
    description: str = ""
    tags: tuple[str, ...] = ()
    #: The object after the change; `None`: it was deleted.
    data: Json = None
    #: What is different from before.
    differences: tuple[Difference, ...] = ()
    #: When it was removed from the history, and by which user; `None`: it is there. What later
    #: revisions show of objects that were last changed by it stays the same.
    removed_ms: int | None = None
    removed_by: str | None = None


class EventKind(StrEnum):
    """What happened."""

    WORKFLOW_SUBMITTED = "workflow.submitted"
    WORKFLOW_REFUSED = "workflow.refused"
    WORKFLOW_STATUS = "workflow.status"
    WORKFLOW_MOVED = "workflow.moved"
    TASK_STATUS = "task.status"
    PREEMPTED = "task.preempted"
    #: A group waits for another kind of reason than before.
    WAITING = "group.waiting"
    POOL_CHANGED = "pool.changed"
    SUBPOOL_CHANGED = "subpool.changed"
    COHORT_CHANGED = "cohort.changed"
    NODE_CHANGED = "node.changed"
    #: A backend does not answer, or does again.
    BACKEND_CHANGED = "backend.changed"
    #: Others had changed a queue of a cluster that follows Bough's, and it was repaired.
    CLUSTER_REPAIRED = "cluster.repaired"
    #: The queues of a cluster cannot be brought in step.
    CLUSTER_TROUBLE = "cluster.trouble"
    PLAN_APPLIED = "plan.applied"


class StoredEvent(msgspec.Struct, frozen=True):
    """Something that happened, in the order in which it was written."""

    kind: EventKind
    at_ms: int
    #: A workflow by its identifier, a pool by its name, or a node as BACKEND/NAME.
    subject: str
    #: The top-level pool that decides who may see it; `None`: only administrators.
    pool: str | None = None
    message: str = ""
    data: Json = None
    number: int = 0


class OutboxMessage(msgspec.Struct, frozen=True):
    """A message to a backend, delivered after the transaction that decided it."""

    kind: str
    #: The backend.
    backend: str
    #: What it is about; sending it twice must do no harm.
    subject: str
    payload: Json = None
    number: int = 0
    attempts: int = 0
