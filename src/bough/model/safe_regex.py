"""The one rule for regular expressions that users write: a form that cannot match exponentially.

They are applied to the paths of files by a backtracking engine, so nothing that repeats without a
limit can itself be matched in several ways. What passes can still be slow on long names, so a
backend that applies one also limits the time (`backends.local.data.file_name_patterns`).
"""

from __future__ import annotations

import re
import warnings

MAXIMUM_LENGTH = 256

_GROUP = re.compile(r"\((?:\?(?:P<[A-Za-z_][A-Za-z0-9_]*>|<?[=!]|[aiLmsux-]*:|>))?")
#: What begins like a group and holds nothing: flags, a comment, what a group matched before.
_NO_GROUP = re.compile(r"\(\?(?:[aiLmsux-]+|#[^)]*|P=[A-Za-z_][A-Za-z0-9_]*)\)")
_SET = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_QUANTIFIER = re.compile(r"(?:([*+])|(\?)|\{([0-9]*)(,?)([0-9]*)\})[?+]?")
#: So many times is as good as without a limit.
_MANY = 3


def regex_fault(pattern: str) -> str | None:
    """What is wrong with a regular expression; `None`: nothing.

    The text follows the name of the field: `inputs[0].regex: '(' is not a regular expression: …`.
    """
    if len(pattern) > MAXIMUM_LENGTH:
        return f"has {len(pattern)} characters; at most {MAXIMUM_LENGTH} are possible"
    if not pattern.isprintable():
        return f"{pattern[:80]!r} has characters that cannot be shown"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # As it is applied: to bytes, of which a set holds few.
            re.compile(pattern.encode())
    except (re.error, OverflowError, RecursionError) as error:
        return f"{pattern[:80]!r} is not a regular expression: {error}"
    if _RegexScan(pattern).explodes():
        return (
            f"{pattern[:80]!r} repeats a part that can be matched in several ways, which could "
            "take for ever; write it without a repeat inside of a repeat"
        )
    return None


class _RegexScan:
    """Walks over a pattern that is known to be valid, one thing after another."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._position = 0
        #: For each open group: whether something in it can be matched in several ways.
        self._open = [False]

    def explodes(self) -> bool:
        """Whether something repeats that can be matched in several ways."""
        while self._position < len(self._pattern):
            if self._step():
                return True
        return False

    def _step(self) -> bool:
        character = self._pattern[self._position]
        if character == "(" and not _NO_GROUP.match(self._pattern, self._position):
            opened = _GROUP.match(self._pattern, self._position)
            self._position = self._position + 1 if opened is None else opened.end()
            self._open.append(False)
            return False
        if character == "|":
            self._open[-1] = True
            self._position += 1
            return False
        return self._repeats(several=self._pass(character))

    def _pass(self, character: str) -> bool:
        """Go behind one thing that may be repeated; say whether there are several ways to."""
        several = False
        end = self._position + 1
        if character == ")" and len(self._open) > 1:
            several = self._open.pop()
        elif character == "\\":
            end += 1
        elif character in "([":
            found = (_NO_GROUP if character == "(" else _SET).match(self._pattern, self._position)
            end = end if found is None else found.end()
        self._position = end
        return several

    def _repeats(self, *, several: bool) -> bool:
        """Look at what follows, and says how often; whether that is too much."""
        found = _QUANTIFIER.match(self._pattern, self._position)
        if found is None or found[0].startswith("{}"):
            self._open[-1] |= several
            return False
        self._position = found.end()
        loop, optional, least, comma, most = found.groups()
        if optional:
            self._open[-1] = True
            return False
        limit = most if comma else least
        many = not limit or int(limit) > _MANY
        self._open[-1] = self._open[-1] or several or bool(loop or comma)
        return many and several
