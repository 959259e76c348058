"""Workflows and tasks of a server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bough.api.common import Priority
from bough.api.results import ResultPage, ResultPart
from bough.api.why import WhyAnswer
from bough.api.workflows import (
    ArrayDocument,
    ArrayPage,
    Submission,
    TaskList,
    TemplateSpec,
    UpdateWorkflow,
    WorkflowDocument,
    WorkflowName,
    WorkflowPage,
)
from bough.client.addresses import Parameter, given, path_of
from bough.client.transport import Transport

#: Query parameters beyond those that a method names.
Query = Mapping[str, Parameter]


class Workflows:
    """Submitted work."""

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
        query: Query | None = None,
    ) -> Submission:
        """Submit a spec, the text of a YAML file, to a pool or subpool.

        Variables of a template are `NAME=VALUE`. A spec that comes with the template it was
        rendered from is not rendered again. The query takes `env_vars` and `label` (lists of
        `NAME=VALUE`), `after` and `afterok` (lists of IDs), `retries`, `array` (as `0-49%8`),
        `dry_run` (only render) and `validation_only` (only check).
        """
        body = TemplateSpec(spec, list(variables), list(string_variables), template)
        path, asked = (
            path_of("pool", pool, "workflow"),
            {**given(priority=priority), **(query or {})},
        )
        return self._transport.send(Submission, "POST", path, body, asked)

    def submit_again(
        self, pool: str, name: str, *, priority: str | None = None, query: Query | None = None
    ) -> Submission:
        """Submit an earlier workflow once more, as it was; the query is that of `submit`."""
        asked = {**given(workflow_id=name, priority=priority), **(query or {})}
        path = path_of("pool", pool, "workflow")
        return self._transport.send(Submission, "POST", path, query=asked)

    def restart(self, pool: str, name: str) -> Submission:
        """Submit a failed workflow again, without the groups that were completed."""
        path = path_of("pool", pool, "workflow", name, "restart")
        return self._transport.send(Submission, "POST", path)

    def list(
        self,
        *,
        pools: Sequence[str] = (),
        users: Sequence[str] = (),
        limit: int = 20,
        offset: int = 0,
        query: Query | None = None,
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
        return self._transport.get(WorkflowPage, path_of("workflow"), asked)

    def get(self, name: str, *, every_attempt: bool = False) -> WorkflowDocument:
        """One workflow with its groups and tasks; earlier attempts only if they are asked for."""
        path, query = path_of("workflow", name), {"verbose": every_attempt}
        return self._transport.get(WorkflowDocument, path, query)

    def array(self, name: str) -> ArrayDocument:
        """An array, and how many of its elements have which status."""
        return self._transport.get(ArrayDocument, path_of("array", name))

    def arrays(
        self,
        *,
        pools: Sequence[str] = (),
        users: Sequence[str] = (),
        limit: int = 20,
        offset: int = 0,
        query: Query | None = None,
    ) -> ArrayPage:
        """A page of arrays, of all pools and users, or of some, the newest first."""
        asked = {
            "limit": limit,
            "offset": offset,
            **_chosen("pools", pools),
            **_chosen("users", users),
            **(query or {}),
        }
        return self._transport.get(ArrayPage, path_of("array"), asked)

    def cancel(self, name: str, *, message: str | None = None, force: bool = False) -> WorkflowName:
        """End a workflow."""
        path, query = (
            path_of("workflow", name, "cancel"),
            {"force": force, **given(message=message)},
        )
        return self._transport.send(WorkflowName, "POST", path, query=query)

    def update(
        self, name: str, *, pool: str | None = None, priority: Priority | None = None
    ) -> WorkflowDocument:
        """Move a workflow that holds no GPUs to another pool, or give it another priority."""
        body = UpdateWorkflow(pool, priority)
        return self._transport.send(WorkflowDocument, "PATCH", path_of("workflow", name), body)

    def why(self, name: str, *, remedies: bool = False, queues: bool = False) -> WhyAnswer:
        """Why each waiting group waits: the certificate, and on request what would help.

        Administrators may have it in the names of queues instead of pools.
        """
        query = given(remedies=remedies or None, queues=queues or None)
        return self._transport.get(WhyAnswer, path_of("workflow", name, "why"), query)

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
        """The output of its tasks, line by line, until it finishes or, without `follow`, so far."""
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
        """Its events, line by line, until it finishes or, without `follow`, so far."""
        query = given(task_name=task, retry_id=retry, **_until(follow))
        return self._transport.lines(path_of("workflow", name, "events"), query)

    def spec(self, name: str, *, template: bool = False) -> str:
        """The submitted spec, rendered or before that."""
        return self._transport.text(path_of("workflow", name, "spec"), {"use_template": template})

    def results(self, name: str, task: str, *, after: str = "", limit: int = 1_000) -> ResultPage:
        """The files that a completed task left, after a path, in the order of paths."""
        query = {"task_name": task, "limit": limit, **given(after=after or None)}
        return self._transport.get(ResultPage, path_of("workflow", name, "results"), query)

    def result_part(
        self, name: str, task: str, path: str, *, offset: int = 0, version: str | None = None
    ) -> ResultPart:
        """A part of such a file, from an offset on; refused where it is of another version."""
        query = {"task_name": task, "path": path, "offset": offset, **given(version=version)}
        return self._transport.get(ResultPart, path_of("workflow", name, "results", "part"), query)

    def tag(self, name: str, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> None:
        """Add and remove tags."""
        query = given(add=list(add), remove=list(remove))
        self._transport.send(None, "POST", path_of("workflow", name, "tag"), query=query)


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
        query: Query | None = None,
    ) -> TaskList:
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
        return self._transport.get(TaskList, path_of("task"), asked)


def _until(follow: bool) -> dict[str, bool]:
    """The query for a stream: a server follows to the end unless it is told otherwise."""
    return {} if follow else {"follow": False}


def _chosen(what: str, names: Sequence[str]) -> dict[str, Parameter]:
    """Some of a kind, or all of them."""
    return {what: list(names)} if names else {f"all_{what}": True}
