"""Several values after one option: `--set a=1 b=2` is `--set a=1 --set b=2`.

Scripts for `osmo` write it so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import click


class _Token(NamedTuple):
    """An argument: an option, the value of one, or a bare word."""

    text: str
    #: Whether it is a word by itself.
    bare: bool = False
    #: The option that may be repeated whose values it follows.
    after: str | None = None


def repeat_options(parameters: Sequence[click.Parameter], arguments: list[str]) -> list[str]:
    """Say an option before each of its values, where there are more words than arguments.

    As many words as the command has arguments stay arguments; the first of the others that follow
    an option become its values.
    """
    places = 0
    for each in parameters:
        if isinstance(each, click.Argument):
            if each.nargs < 0:
                return arguments
            places += each.nargs
    tokens = list(_tokens(parameters, arguments))
    excess = sum(token.bare for token in tokens) - places
    repeated: list[str] = []
    for token in tokens:
        if token.after is not None and excess > 0:
            repeated.append(token.after)
            excess -= 1
        repeated.append(token.text)
    return repeated


def _tokens(parameters: Sequence[click.Parameter], arguments: list[str]) -> Iterator[_Token]:
    options = {
        name: each
        for each in parameters
        if isinstance(each, click.Option)
        for name in (*each.opts, *each.secondary_opts)
    }
    after: str | None = None
    values = 0
    words_only = False
    for text in arguments:
        if values:
            values -= 1
            yield _Token(text)
        elif words_only or text == "-" or not text.startswith("-"):
            yield _Token(text, bare=True, after=after)
        else:
            words_only = text == "--"
            option = options.get(text)
            takes = option is not None and not option.is_flag and not option.count
            values = option.nargs if option is not None and takes else 0
            after = text if option is not None and takes and option.multiple else None
            yield _Token(text)
