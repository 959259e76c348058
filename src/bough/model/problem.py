"""What is wrong with an object as it was written: where, why, how bad.

Rules return Problems, readers add the file and the line, and commands print them.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

#: Where in an object: keys of mappings and positions in lists, from the top.
FieldPath = tuple[str | int, ...]

#: Longer texts, which only a mistake or malice makes, are cut.
MAXIMUM_TEXT = 400


class Severity(StrEnum):
    """Whether the object can be used at all."""

    ERROR = "error"
    WARNING = "warning"


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong, with its place."""

    path: FieldPath
    #: Names the offending value and says what would be right.
    message: str
    severity: Severity = Severity.ERROR
    #: Kind and name of the object, as `ClusterQueue/team-a`.
    subject: str = ""
    #: File and line, as far as they are known; line 0 means unknown.
    source: str = ""
    line: int = 0

    @property
    def field(self) -> str:
        """The path as people write it: `spec.resourceGroups[0].flavors[1].name`."""
        return dotted(self.path)


def dotted(path: FieldPath) -> str:
    """Write a field path as people read it."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.isidentifier():
            text += f".{part}" if text else part
        else:
            text += f'["{part}"]'
    return text


def problem_line(problem: Problem) -> str:
    """A problem as one line: place, severity, subject, field, message."""
    place = f"{problem.source}:{problem.line}" if problem.line else problem.source
    severity = "" if problem.severity is Severity.ERROR else "warning"
    parts = (place, severity, clip(problem.subject), clip(problem.field), clip(problem.message))
    return ": ".join(part for part in parts if part)


def clip(text: str) -> str:
    """Cut a text that is too long to be read."""
    return text if len(text) <= MAXIMUM_TEXT else text[: MAXIMUM_TEXT - 1] + "…"
