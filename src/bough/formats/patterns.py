"""Regular expressions that people send, held to a form that cannot take for ever.

They are applied to the paths of files by an engine that tries every way to match. So nothing that
repeats may have a choice inside it, and few things may repeat at all. Must not know what is
matched.
"""

from __future__ import annotations

import re
import warnings

MAXIMUM_LENGTH = 256
#: Parts such as `.*` that can have any length; each multiplies the time that a match may take.
MAXIMUM_REPEATS = 4

_GROUP = re.compile(r"\((?:\?(?:P<[A-Za-z_][A-Za-z0-9_]*>|:))?")
_SET = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_QUANTIFIER = re.compile(r"(?:[*+?]|\{([0-9]*)(?:(,)([0-9]*))?\})[?+]?")


def pattern_fault(pattern: str) -> str | None:
    """What is wrong with a regular expression; `None`: nothing."""
    if len(pattern) > MAXIMUM_LENGTH:
        return f"has {len(pattern)} characters; at most {MAXIMUM_LENGTH} are possible"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"{pattern!r} is no regular expression: {error}"
    return _Scan(pattern).fault()


class _Scan:
    """Walks over a pattern that is known to be valid, group by group."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._position = 0
        self._repeats = 0
        #: For each open group: whether something in it can match in more than one way.
        self._open = [False]

    def fault(self) -> str | None:
        while self._position < len(self._pattern):
            found = self._step()
            if found is not None:
                return found
        if self._repeats > MAXIMUM_REPEATS:
            return (
                f"{self._pattern!r} repeats {self._repeats} parts without a limit, which could "
                f"take for ever; at most {MAXIMUM_REPEATS} are possible"
            )
        return None

    def _step(self) -> str | None:
        character = self._pattern[self._position]
        if character == "(":
            opened = _GROUP.match(self._pattern, self._position)
            start = self._position if opened is None else opened.end()
            if self._pattern[start : start + 1] == "?" or opened is None:
                return "uses (?…), of which only (?:…) and (?P<name>…) are possible"
            self._position = start
            self._open.append(False)
            return None
        if character == "|":
            self._open[-1] = True
            self._position += 1
            return None
        return self._atom(character)

    def _atom(self, character: str) -> str | None:
        """One thing that may be repeated."""
        varies = False
        if character == ")":
            varies = self._open.pop()
            self._position += 1
        elif character == "[":
            found = _SET.match(self._pattern, self._position)
            self._position = self._position + 1 if found is None else found.end()
        elif character == "\\":
            if self._pattern[self._position + 1 : self._position + 2] in "123456789":
                return "refers back to a group, which is not possible"
            self._position += 2
        else:
            self._position += 1
        return self._repeat(varies=varies)

    def _repeat(self, *, varies: bool) -> str | None:
        """What follows an atom and says how often it stands there."""
        found = _QUANTIFIER.match(self._pattern, self._position)
        if found is None or found[0].startswith("{}"):
            self._open[-1] = self._open[-1] or varies
            return None
        self._position = found.end()
        if found[0][0] == "?":
            self._open[-1] = True
            return None
        if varies:
            return f"{self._pattern!r} repeats a part that has a choice, which could take for ever"
        if found[2] is not None or found[0][0] in "*+":
            self._repeats += 1
            self._open[-1] = True
        return None
