"""A growing list of problems of one object."""

from __future__ import annotations

from bough.model.problem import FieldPath, Problem, Severity


class Findings:
    """What is wrong with one object."""

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.problems: list[Problem] = []

    def error(self, path: FieldPath, message: str) -> None:
        """Add what makes the object unusable."""
        self.problems.append(Problem(path, message, Severity.ERROR, self.subject))

    def warn(self, path: FieldPath, message: str) -> None:
        """Add what is odd, but no obstacle."""
        self.problems.append(Problem(path, message, Severity.WARNING, self.subject))
