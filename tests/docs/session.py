"""Runs a Python session that a page shows, as the interpreter would."""

from __future__ import annotations

import doctest
from code import InteractiveInterpreter
from collections.abc import Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO

from tests.docs.blocks import PageError
from tests.docs.commands import ROOT


def replay(lines: Sequence[str], first: int) -> list[str]:
    """The session with what it really prints; its text starts at line `first` of the page."""
    text = "\n".join(lines) + "\n"
    try:
        examples = doctest.DocTestParser().get_examples(text)
    except ValueError as error:
        raise PageError(first, f"cannot be read as a Python session: {error}") from None
    if not examples:
        raise PageError(first, "a Python session without a line that starts with >>>")
    interpreter = InteractiveInterpreter({"__name__": "__page__"})
    played: list[str] = []
    for example in examples:
        count = example.source.count("\n")
        played += lines[example.lineno : example.lineno + count]
        played += _output(interpreter, example.source, first + example.lineno).splitlines()
    return played


def _output(interpreter: InteractiveInterpreter, source: str, line: int) -> str:
    printed, failed = StringIO(), StringIO()
    with chdir(ROOT), redirect_stdout(printed), redirect_stderr(failed):
        # The interpreter wants an empty line where a block of several lines ends.
        unfinished = interpreter.runsource(f"{source}\n", symbol="single")
    if unfinished or failed.getvalue():
        raise PageError(line, failed.getvalue() or "this statement is not finished")
    return printed.getvalue()
