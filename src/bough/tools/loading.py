"""From files to a validated organisation and its quota tree, for every tool that needs them.

Joins what formats read to the rules of the core, and gives every problem its file and line.
Must not know what is asked of the tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bough.core.quota.references import validate
from bough.core.quota.tree import QuotaTree
from bough.core.quota.usage import usage_of
from bough.errors import Invalid
from bough.formats.composer import Unreadable
from bough.formats.documents import Document, find_files, locate, read_file
from bough.formats.kueue import read_organisation
from bough.model.problem import Problem, Severity
from bough.tools.answer import problem_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bough.model.organisation import Organisation

#: How many problems an error lists; `check` lists them all.
LISTED_PROBLEMS = 20


class Loaded(NamedTuple):
    """What was read, and everything that is wrong with it, in the order of the files."""

    organisation: Organisation
    problems: list[Problem]


def load(paths: Iterable[str], *, lenient: bool = False) -> Loaded:
    """Read and validate files and folders; files that are no YAML are among the problems."""
    documents: list[Document] = []
    problems: list[Problem] = []
    files = find_files(paths)
    for file in files:
        try:
            documents.extend(read_file(file))
        except Unreadable as error:
            message = f"{error.reason} (column {error.column})" if error.column else error.reason
            problems.append(Problem((), message, source=error.source, line=error.line))
    read = read_organisation(documents, lenient=lenient)
    problems.extend(read.problems)
    for problem in validate(read.organisation):
        document = read.documents.get(problem.subject)
        problems.append(problem if document is None else locate(problem, document))
    order = {file: index for index, file in enumerate(files)}
    problems.sort(key=lambda problem: (order.get(problem.source, -1), problem.line))
    return Loaded(read.organisation, list(dict.fromkeys(problems)))


def load_valid(paths: Iterable[str], *, lenient: bool = False) -> Loaded:
    """Read files and folders that must have no errors; warnings are allowed."""
    loaded = load(paths, lenient=lenient)
    errors = [each for each in loaded.problems if each.severity is Severity.ERROR]
    if errors:
        count = f"{len(errors)} errors" if len(errors) > 1 else "an error"
        lines = [problem_line(each) for each in errors[:LISTED_PROBLEMS]]
        if len(errors) > LISTED_PROBLEMS:
            lines.append(f"... and {len(errors) - LISTED_PROBLEMS} more")
        hint = "" if lenient else "--lenient turns unknown fields into warnings"
        raise Invalid(f"{count} in what was read", hint=hint, details=tuple(lines))
    return loaded


def build_tree(organisation: Organisation) -> QuotaTree:
    """Build the quota tree with the usage of all workloads that hold quota."""
    tree = QuotaTree.of(organisation.cohorts, organisation.queues)
    for workload in organisation.workloads:
        usage = usage_of(workload)
        if usage and workload.admission is not None:
            tree.add_usage(workload.admission.queue, usage)
    return tree
