"""Problems as plain data and as lines, for the answers of all tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bough.model.amount import write_amount
from bough.model.problem import clip, problem_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bough.model.problem import Problem

__all__ = [
    "Answer",
    "clip",
    "problem_answer",
    "problem_answers",
    "problem_line",
    "write_amount",
]

#: Plain data, ready for JSON.
Answer = dict[str, Any]


def problem_answer(problem: Problem) -> Answer:
    """A problem as plain data; what is unknown is null."""
    return {
        "severity": problem.severity.value,
        "file": problem.source or None,
        "line": problem.line or None,
        "subject": clip(problem.subject) or None,
        "field": clip(problem.field) or None,
        "message": clip(problem.message),
    }


def problem_answers(problems: Iterable[Problem]) -> list[Answer]:
    """Problems as plain data, in order."""
    return [problem_answer(problem) for problem in problems]
