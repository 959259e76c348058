"""Workflows and tasks of a server. Must not know HTTP, nor what a spec says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bough.client.transport import Transport, given, path_of

if TYPE_CHECKING:
    from bough.client.types import Submitted, Workflow, WorkflowPage


class Workflows:
    """What somebody asked to run."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def submit(
        self,
        pool: str,
        spec: str,
        *,
        priority: str | None = None,
        variables: Sequence[str] = (),
        string_variables: Sequence[str] = (),
        template: str | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> Submitted:
        """Submit a spec, the text of a YAML file, to a pool or subpool.

        Variables of a template are `NAME=VALUE`. A spec that comes with the template it was
        rendered from is not rendered again. The query takes `env_vars` and `label` (lists of
        `NAME=VALUE`), `dry_run` (only render) and `validation_only` (only check).
        """
        body = {
            "file": spec,
            "set_variables": list(variables),
            "set_string_variables": list(string_variables),
            "uploaded_templated_spec": template,
        }
        asked = {**given(priority=priority), **(query or {})}
        return self._transport.send("POST", path_of("pool", pool, "workflow"), body, asked)

    def submit_again(
        self,
        pool: str,
        name: str,
        *,
        priority: str | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> Submitted:
        """Submit an earlier workflow once more, as it was; the query is that of `submit`."""
        asked = {**given(workflow_id=name, priority=priority), **(query or {})}
        return self._transport.send("POST", path_of("pool", pool, "workflow"), None, asked)

    def restart(self, pool: str, name: str) -> Submitted:
        """Submit a failed workflow again, without the groups that were completed."""
        return self._transport.send("POST", path_of("pool", pool, "workflow", name, "restart"))

    def list(
        self,
        *,
        pools: Sequence[str] = (),
        users: Sequence[str] = (),
        limit: int = 20,
        offset: int = 0,
        query: Mapping[str, Any] | None = None,
    ) -> WorkflowPage:
        """A page of workflows, the newest first; of all pools and users, or of some.

        The query takes what else can be asked: `name`, `statuses`, `priority`, `label`,
        `no_label`, `tags`, `submitted_after`, `submitted_before`.
        """
        asked = {
            "order": "DESC",
            "limit": limit,
            "offset": offset,
            **_chosen("pools", pools),
            **_chosen("users", users),
            **(query or {}),
        }
        return self._transport.get(path_of("workflow"), asked)

    def get(self, name: str, *, every_attempt: bool = False) -> Workflow:
        """One workflow with its groups and tasks; earlier attempts only if they are asked for."""
        return self._transport.get(path_of("workflow", name), {"verbose": every_attempt})

    def cancel(self, name: str, *, message: str | None = None, force: bool = False) -> Any:
        """End a workflow."""
        query = {"force": force, **given(message=message)}
        return self._transport.send("POST", path_of("workflow", name, "cancel"), None, query)

    def update(
        self, name: str, *, pool: str | None = None, priority: str | None = None
    ) -> Workflow:
        """Move a workflow that holds no GPUs to another pool, or give it another priority."""
        body = given(pool=pool, priority=priority)
        return self._transport.send("PATCH", path_of("workflow", name), body)

    def why(self, name: str, *, remedies: bool = False, queues: bool = False) -> Any:
        """Why each group that waits does: the certificate; and what would help, if asked for.

        Administrators may have it in the names of queues instead of pools.
        """
        query = given(remedies=remedies or None, queues=queues or None)
        return self._transport.get(path_of("workflow", name, "why"), query)

    def logs(
        self,
        name: str,
        *,
        task: str | None = None,
        retry: int | None = None,
        last_lines: int | None = None,
        errors: bool = False,
        follow: bool = True,
    ) -> Iterator[str]:
        """The lines that its tasks wrote, as they come until it ends, or those up to now."""
        query = given(task_name=task, retry_id=retry, last_n_lines=last_lines, **_until(follow))
        path = path_of("workflow", name, "error_logs" if errors else "logs")
        return self._transport.lines(path, query)

    def events(
        self,
        name: str,
        *,
        task: str | None = None,
        retry: int | None = None,
        follow: bool = True,
    ) -> Iterator[str]:
        """What happened to it, line by line, until it ends, or up to now."""
        query = given(task_name=task, retry_id=retry, **_until(follow))
        return self._transport.lines(path_of("workflow", name, "events"), query)

    def spec(self, name: str, *, template: bool = False) -> str:
        """What was submitted, rendered or before that."""
        return self._transport.text(path_of("workflow", name, "spec"), {"use_template": template})

    def tag(self, name: str, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> Any:
        """Add and remove tags."""
        query = given(add=list(add), remove=list(remove))
        return self._transport.send("POST", path_of("workflow", name, "tag"), None, query)


class Tasks:
    """The tasks of all workflows."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self,
        *,
        pools: Sequence[str] = (),
        users: Sequence[str] = (),
        limit: int = 20,
        offset: int = 0,
        query: Mapping[str, Any] | None = None,
    ) -> Any:
        """A page of tasks, of all pools and users, or of some.

        The query takes what else can be asked: `statuses`, `order`, `workflow_id`, `nodes`,
        `priority`, `started_after`, `started_before`, `summary`, `aggregate_by_workflow`.
        """
        asked = {
            "limit": limit,
            "offset": offset,
            **_chosen("pools", pools),
            **_chosen("users", users),
            **(query or {}),
        }
        return self._transport.get(path_of("task"), asked)


def _until(follow: bool) -> dict[str, bool]:
    """A server goes on to the end unless it is told otherwise."""
    return {} if follow else {"follow": False}


def _chosen(what: str, names: Sequence[str]) -> dict[str, Any]:
    """Some of a kind, or all of them."""
    return {what: list(names)} if names else {f"all_{what}": True}
