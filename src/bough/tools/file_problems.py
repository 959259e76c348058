"""Problems in the answers of all tools, and what a command needs to print amounts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.api.file_answers import CheckAnswer, FileProblem
from bough.model.problem import Severity, clip, problem_line
from bough.model.words import write_amount

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bough.model.problem import Problem

__all__ = ["check_answer", "clip", "problem_answers", "problem_line", "write_amount"]


def problem_answers(problems: Sequence[Problem]) -> list[FileProblem]:
    """Problems in order; what is not known is null."""
    return [
        FileProblem(
            severity=problem.severity.value,
            file=problem.source or None,
            line=problem.line or None,
            subject=clip(problem.subject) or None,
            field=clip(problem.field) or None,
            message=clip(problem.message),
        )
        for problem in problems
    ]


def check_answer(objects: dict[str, int], problems: Sequence[Problem]) -> CheckAnswer:
    """Everything that is wrong in the files, and how many objects of each kind they have."""
    errors = sum(problem.severity is Severity.ERROR for problem in problems)
    return CheckAnswer(objects, errors, len(problems) - errors, problem_answers(problems))
