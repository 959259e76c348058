"""What completed tasks left in `{{output}}`, for those who may read their workflow."""

from __future__ import annotations

from collections.abc import Mapping

from bough.control.site import Site
from bough.control.workflows import query
from bough.control.workflows.output_locations import find_elsewhere, place_of
from bough.errors import Conflict, Invalid, NotFound
from bough.model.access import Actor
from bough.model.backend import TaskFiles
from bough.model.result import FilePart, KeptFiles, ResultKeeper, ResultStore
from bough.model.workflow import Task, Workflow

#: What is read of a file at once.
PART_BYTES = 4 << 20
LONGEST_PATH = 1_024


class TaskResults:
    """The results of one task of a workflow."""

    def __init__(
        self, site: Site, backends: Mapping[str, TaskFiles], actor: Actor, name: str, task: str
    ) -> None:
        view = query.get_workflow(site, actor, name)
        found = [each for group in view.groups for each in view.tasks[group.name]]
        named = [each for each in found if each.name == task]
        if not named:
            raise NotFound(f"Workflow {view.workflow.workflow_id} has no task {task[:80]}.")
        self._task: Task = named[0]
        self._workflow: Workflow = view.workflow
        self._store = _store(site, backends, view.workflow)

    def files(self, after: str, limit: int) -> KeptFiles:
        """The files after a path, at most so many."""
        parts = split(after) if after else ()
        found = self._store.list_files(self._workflow.workflow_id, self._task.name, parts, limit)
        if found is None:
            raise self._nothing()
        return found

    def part(self, path: str, offset: int, version: str | None) -> FilePart:
        """A part of a file, from an offset on; refused where it is not of the version any more."""
        name = self._workflow.workflow_id
        found = self._store.read_part(name, self._task.name, split(path), offset, PART_BYTES)
        if found is None:
            if self._store.list_files(name, self._task.name, (), 1) is None:
                raise self._nothing()
            raise NotFound(f"Task {self._task.name} of {name} has left no file {path[:200]}.")
        if version is not None and version != found.file.version:
            raise Conflict(
                f"The file {path[:200]} of task {self._task.name} of {name} has changed.",
                hint="start the download again",
            )
        return found

    def _nothing(self) -> NotFound | Conflict:
        whose = f"Task {self._task.name} of {self._workflow.workflow_id}"
        if not self._task.status.finished:
            status = self._task.status
            return Conflict(f"{whose} is {status}; its results are there when it has completed.")
        return NotFound(f"Nothing is kept of what {whose} left behind; it is {self._task.status}.")


def split(path: str) -> tuple[str, ...]:
    """The parts of a path that a request names."""
    parts = tuple(path.split("/"))
    wrong = len(path) > LONGEST_PATH or not path.isprintable()
    if wrong or any(each in ("", ".", "..") for each in parts):
        raise Invalid(f"{path[:200]!r} is not the path of a result like folder/file.")
    return parts


def _store(site: Site, backends: Mapping[str, TaskFiles], workflow: Workflow) -> ResultStore:
    elsewhere = find_elsewhere(site, backends, workflow.backend)
    if elsewhere is not None:
        raise Conflict(f"What {workflow.workflow_id} left behind is {place_of(elsewhere)}.")
    backend = backends.get(workflow.backend)
    if not isinstance(backend, ResultKeeper):
        raise Conflict(f"Backend {workflow.backend} keeps no results.")
    return backend.results
