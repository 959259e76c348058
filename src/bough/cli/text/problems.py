"""What is wrong with files, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.cli.output import count, printable

if TYPE_CHECKING:
    from bough.api.file_answers import CheckAnswer, FileProblem


def problem_line(problem: FileProblem) -> str:
    """One line for a problem: file and line, how bad, whose, which field, what is wrong."""
    place = problem.file or ""
    if problem.line:
        place = f"{place}:{problem.line}"
    parts = (
        place,
        problem.severity,
        problem.subject,
        problem.field,
        problem.message,
    )
    return printable(": ".join(part for part in parts if part))


def render_check(answer: CheckAnswer) -> str:
    """A line for each problem, then how many objects, errors and warnings there are."""
    lines = [problem_line(problem) for problem in answer.problems]
    objects = count(sum(answer.objects.values()), "object")
    errors, warnings = count(answer.errors, "error"), count(answer.warnings, "warning")
    return "\n".join([*lines, f"{objects}, {errors}, {warnings}"])
