"""What people send as a workflow, into a spec; or all that is wrong with it, as one error.

Must not know how a workflow is written (formats.workflow), nor what becomes of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bough.control.fields import check_exit_actions
from bough.errors import Invalid
from bough.formats.workflow import read_workflow
from bough.model.problem import Problem, Severity
from bough.model.workflow import WorkflowSpec

#: Marks of a template; placeholders that a task fills in while it runs look like `{{output}}`.
_TEMPLATE_MARKS = ("{%", "{#", "default-values")


def read_spec(text: str, labels: dict[str, str] | None = None) -> WorkflowSpec:
    """Read a workflow; labels of the submission come on top of its own."""
    if any(mark in text for mark in _TEMPLATE_MARKS):
        raise Invalid(
            "The workflow is a template, and this server does not render templates; "
            "send it rendered."
        )
    spec, problems = read_workflow(text)
    if spec is None:
        raise _invalid(problems)
    for group in spec.groups:
        for task in group.tasks:
            check_exit_actions(f"Task {task.name}: exitActions", task.exit_actions)
    return msgspec.structs.replace(spec, labels={**spec.labels, **(labels or {})})


def _invalid(problems: Sequence[Problem]) -> Invalid:
    errors = [each for each in problems if each.severity is Severity.ERROR]
    lines = [f"line {each.line}: {each.field}: {each.message}" for each in errors]
    more = "" if len(lines) == 1 else f" (and {len(lines) - 1} more)"
    return Invalid(f"The workflow is not valid: {lines[0]}{more}", details=tuple(lines))
