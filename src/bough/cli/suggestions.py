"""Which command is meant by a word that is not one: `bough logs` is `bough workflow logs`."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

import click

#: How many commands are named.
MOST = 3
#: Words of other programs, and what they are called here; the first that a group has is meant.
SYNONYMS = {
    "abort": ("cancel",),
    "add": ("create", "set"),
    "apply": ("submit", "update"),
    "describe": ("show", "query", "get", "info"),
    "edit": ("update",),
    "explain": ("why",),
    "get": ("show", "query", "info", "list"),
    "info": ("show", "query", "get", "list"),
    "inspect": ("show", "query", "get", "info"),
    "job": ("workflow",),
    "jobs": ("workflow",),
    "kill": ("cancel", "delete"),
    "log": ("logs",),
    "ls": ("list",),
    "machine": ("node",),
    "machines": ("node",),
    "make": ("create",),
    "mv": ("rename", "move"),
    "new": ("create",),
    "ps": ("list",),
    "remove": ("delete",),
    "rm": ("delete", "cancel"),
    "run": ("submit",),
    "server": ("serve",),
    "show": ("query", "get", "info", "list"),
    "start": ("submit", "serve"),
    "stat": ("query", "show", "list"),
    "status": ("query", "show", "list"),
    "stop": ("cancel", "delete"),
    "tail": ("logs",),
    "view": ("show", "query", "get"),
    "whoami": ("profile",),
}
#: Groups in which a word is looked for first, where several have it.
FIRST = ("workflow", "pool")


def no_such_command(context: click.Context, group: click.Group, word: str) -> click.UsageError:
    """The error for a word that is no command of a group."""
    meant = suggest(context, group, word)
    root = context.command_path
    hint = " or ".join(f"`{root} {each}`" for each in meant)
    message = f"There is no command `{root} {word}`."
    return click.UsageError(f"{message} Did you mean {hint}?" if hint else message, context)


def suggest(context: click.Context, group: click.Group, word: str) -> list[str]:
    """Commands of a group that a word may mean, the likeliest first."""
    word = word.lower()
    own = group.list_commands(context)
    for name in (word, *SYNONYMS.get(word, ())):
        if name in own:
            return [name]
    paths = list(_below(context, group))
    for name in (word, *SYNONYMS.get(word, ())):
        found = sorted((path for path in paths if path.rpartition(" ")[2] == name), key=_rank)
        if found:
            return found[:1] if found[0].startswith(FIRST) else found[:MOST]
    close = difflib.get_close_matches(word, own, n=1)
    if close:
        return close
    last = {path.rpartition(" ")[2]: path for path in sorted(paths, key=_rank, reverse=True)}
    return [last[name] for name in difflib.get_close_matches(word, last, n=1)]


def _rank(path: str) -> tuple[int, int, str]:
    """Commands on workflows before those on pools, and those before the others."""
    first = path.partition(" ")[0]
    return (FIRST.index(first) if first in FIRST else len(FIRST), path.count(" "), path)


def _below(context: click.Context, group: click.Group) -> Iterator[str]:
    """All commands below the groups of a group, by their path."""
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            for child in found.list_commands(context):
                yield f"{name} {child}"
            yield from (f"{name} {path}" for path in _below(context, found))
