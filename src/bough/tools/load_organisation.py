"""From files to a validated organisation and its quota tree, for every tool that needs them.

Joins what formats read to the rules of the core, and gives every problem its file and line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bough.core.quota.references import validate
from bough.core.quota.tree import QuotaTree
from bough.core.quota.usage import usage_of
from bough.errors import Invalid
from bough.formats.kueue.organisation import read_organisation
from bough.formats.yaml.composer import Unreadable
from bough.formats.yaml.documents import Document, find_files, locate, read_file
from bough.model.problem import Problem, Severity
from bough.tools.file_problems import problem_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bough.model.organisation import Organisation
    from bough.model.workload import Workload

#: How many problems an error lists; `check` lists them all.
LISTED_PROBLEMS = 20


class Loaded(NamedTuple):
    """What was read, and everything that is wrong with it, in the order of the files."""

    organisation: Organisation
    problems: list[Problem]


class Texts(NamedTuple):
    """The documents of some files; files that are no YAML are among the problems."""

    documents: list[Document]
    problems: list[Problem]
    files: list[str]


def load(paths: Iterable[str], *, lenient: bool = False) -> Loaded:
    """Read and validate files and folders; files that are no YAML are among the problems."""
    texts = read_texts(paths)
    read = read_organisation(texts.documents, lenient=lenient)
    located = locate_all(validate(read.organisation), read.documents)
    problems = in_order([*texts.problems, *read.problems, *located], texts.files)
    return Loaded(read.organisation, problems)


def load_valid(paths: Iterable[str], *, lenient: bool = False) -> Loaded:
    """Read files and folders that must have no errors; warnings are allowed."""
    loaded = load(paths, lenient=lenient)
    refuse_errors(loaded.problems, lenient=lenient)
    return loaded


def read_texts(paths: Iterable[str]) -> Texts:
    """Read every document of files and folders."""
    texts = Texts([], [], find_files(paths))
    for file in texts.files:
        try:
            texts.documents.extend(read_file(file))
        except Unreadable as error:
            message = f"{error.reason} (column {error.column})" if error.column else error.reason
            texts.problems.append(Problem((), message, source=error.source, line=error.line))
    return texts


def locate_all(problems: Iterable[Problem], documents: Mapping[str, Document]) -> list[Problem]:
    """Add file and line to the problems whose subject was read from a document."""
    return [
        locate(problem, documents[problem.subject]) if problem.subject in documents else problem
        for problem in problems
    ]


def in_order(problems: Iterable[Problem], files: list[str]) -> list[Problem]:
    """Problems in the order of the files and lines, each once."""
    order = {file: index for index, file in enumerate(files)}
    by_place = sorted(problems, key=lambda each: (order.get(each.source, -1), each.line))
    return list(dict.fromkeys(by_place))


def refuse_errors(problems: Iterable[Problem], *, lenient: bool) -> None:
    """Raise Invalid with all errors, if there are any."""
    errors = [each for each in problems if each.severity is Severity.ERROR]
    if errors:
        count = f"{len(errors)} errors" if len(errors) > 1 else "an error"
        lines = [problem_line(each) for each in errors[:LISTED_PROBLEMS]]
        if len(errors) > LISTED_PROBLEMS:
            lines.append(f"... and {len(errors) - LISTED_PROBLEMS} more")
        is_unknown = any(each.message.startswith("unknown field") for each in errors)
        helps = is_unknown and not lenient
        hint = "--lenient turns unknown fields into warnings" if helps else ""
        raise Invalid(f"{count} in what was read", hint=hint, details=tuple(lines))


def build_tree(organisation: Organisation) -> QuotaTree:
    """Build the quota tree with the usage of all workloads that hold quota."""
    tree = QuotaTree.of(organisation.cohorts, organisation.queues)
    for workload in organisation.workloads:
        usage = usage_of(workload)
        if usage and workload.admission is not None:
            tree.add_usage(workload.admission.queue, usage)
    return tree


def waiting_in(organisation: Organisation) -> dict[str, dict[str, int]]:
    """By queue: what all workloads that wait in it ask for."""
    doors = {(each.namespace, each.name): each.queue for each in organisation.local_queues}
    found: dict[str, dict[str, int]] = {}
    for workload in organisation.workloads:
        queue = doors.get((workload.namespace, workload.local_queue or ""))
        if queue is None or workload.admission is not None or not is_waiting_workload(workload):
            continue
        asked = found.setdefault(queue, {})
        for pod_set in workload.pod_sets:
            for resource, amount in pod_set.template.requests.items():
                asked[resource] = asked.get(resource, 0) + pod_set.count * amount
    return found


def is_waiting_workload(workload: Workload) -> bool:
    """Whether a workload without quota still wants it."""
    ended = any(each.type == "Finished" and each.status for each in workload.conditions)
    return workload.active and not ended
