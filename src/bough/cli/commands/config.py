"""`bough config`: arguments of the commands on configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from bough.cli.command import CommandGroup
from bough.cli.file_commands import tool
from bough.cli.options import Capitals, count_option, format_option, read_pairs, read_text
from bough.cli.output import echo
from bough.cli.screen import program, utc_option
from bough.cli.server_commands import client
from bough.cli.text.change_history import render_differences, render_revisions
from bough.errors import Invalid, NotFound

if TYPE_CHECKING:
    from bough.api.common import Json
    from bough.api.configs import ConfigRevision

KINDS = Capitals(["WORKFLOW", "POLICY", "POOL", "SUBPOOL", "COHORT", "ROLE", "BACKEND", "SERVICE"])
#: Where the objects of a kind are, in an answer that has all of them.
_NAMED = ("pools", "cohorts", "roles", "backends")


class KindAndRevision(click.ParamType):
    """`POOL`, or `POOL:3`."""

    name = "TYPE[:REVISION]"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int | None]:
        """The kind in capitals, and the number of the revision."""
        kind, colon, revision = str(value).partition(":")
        found: str = KINDS.convert(kind, param, ctx)
        if colon and not revision.isdecimal():
            self.fail(f"{value!r} is not like POOL:3", param, ctx)
        return found, int(revision) if colon else None


@click.group(cls=CommandGroup)
def config() -> None:
    """Configuration: show, change, compare, roll back."""


@config.command("list")
@utc_option
@format_option
def list_configs(format_type: str) -> None:
    """List the latest revision of each type."""
    latest: dict[str, ConfigRevision] = {}
    for each in client().configs.history(limit=1_000):
        latest.setdefault(each.config_type, each)
    echo([latest[kind] for kind in sorted(latest)], format_type, render_revisions, key="configs")


@config.command()
@click.argument("what", type=KindAndRevision())
@click.argument("names", nargs=-1)
@format_option
def show(what: tuple[str, int | None], names: tuple[str, ...], format_type: str) -> None:
    """Show the configuration of a type, or only the objects NAMES.

    WHAT is TYPE for the current configuration, or TYPE:REVISION for that of a revision.
    """
    kind, revision = what
    if revision is None:
        _refuse_subpools(kind)
        answer = client().configs.get(kind)
    else:
        found = client().configs.history(kinds=(kind,), revision=revision, with_data=True)
        if not found:
            raise NotFound(f"{kind} has no revision {revision}.")
        answer = found[0].data
    for name in names:
        answer = _step(answer, name, kind if revision is None else f"{kind}:{revision}")
    echo(answer, "json" if format_type == "text" else format_type, str)


@config.command()
@click.argument("kind", type=KINDS, metavar="TYPE")
@click.argument("name", required=False)
@click.option(
    "--file",
    "-f",
    required=True,
    help="JSON or YAML with the fields to change; - is standard input.",
)
@click.option("--description", "-d", default="", help="The reason, stored in the history.")
@format_option
def update(kind: str, name: str | None, file: str, description: str, format_type: str) -> None:
    """Change fields from a file. NAME is the object, for types with several objects."""
    _refuse_subpools(kind)
    if kind == "POLICY" and name is None:
        # As it is written, so that what is wrong with it is told with its line.
        text = read_text(file, dash=True)
        shown = "<stdin>" if file == "-" else file
        answer = client().configs.update_policy(text, shown, description)
    else:
        answer = client().configs.update(kind, _read(file), name, description)
    echo(answer, format_type, lambda _: f"{_title(kind, name)} is updated.")


@config.command("set")
@click.argument("kind", type=KINDS, metavar="TYPE")
@click.argument("fields", metavar="FIELD=VALUE...", nargs=-1, required=True)
@click.option("--name", help="The object, for types with several objects.")
@click.option("--description", "-d", default="", help="The reason, stored in the history.")
@format_option
def set_fields(
    kind: str, fields: tuple[str, ...], name: str | None, description: str, format_type: str
) -> None:
    """Change fields. A value is JSON if it can be read as such, otherwise text.

    Objects are merged with the existing value; null removes a field: platforms='{"h100": null}'.
    """
    _refuse_subpools(kind)
    changes = {field: _value(text) for field, text in read_pairs("FIELD", fields).items()}
    answer = client().configs.update(kind, changes, name, description)
    echo(answer, format_type, lambda _: f"{_title(kind, name)} is updated.")


@config.command()
@click.argument("kind", type=KINDS, metavar="TYPE")
@click.argument("name")
@format_option
def delete(kind: str, name: str, format_type: str) -> None:
    """Delete one object."""
    _refuse_subpools(kind)
    asked = client()
    if kind == "POOL":
        # Deleting what does not exist succeeds on the server, which would hide a misspelled name.
        asked.pools.get(name)
    answer = asked.configs.delete(kind, name)
    echo(answer, format_type, lambda _: f"{_title(kind, name)} is deleted.")


@config.command()
@click.argument("kinds", type=KINDS, metavar="TYPE...", nargs=-1)
@click.option("--name", help="Only changes to this object.")
@count_option
@click.option("--offset", "-f", type=click.IntRange(0), default=0, help="How many to skip first.")
@utc_option
@format_option
def history(
    kinds: tuple[str, ...], name: str | None, count: int, offset: int, format_type: str
) -> None:
    """List changes, newest first."""
    answer = client().configs.history(
        kinds=kinds, name=name, limit=count, offset=offset, with_data=format_type == "json"
    )
    echo(answer, format_type, render_revisions, key="configs")


@config.command()
@click.argument("before", type=KindAndRevision())
@click.argument("after", type=click.IntRange(1), metavar="REVISION")
@format_option
def diff(before: tuple[str, int | None], after: int, format_type: str) -> None:
    """Show how two revisions differ: TYPE:REVISION REVISION."""
    kind, revision = before
    if revision is None:
        raise click.UsageError(f"Say from which revision: {kind}:REVISION.")
    echo(client().configs.diff(kind, revision, after), format_type, render_differences)


@config.command()
@click.argument("what", type=KindAndRevision())
@format_option
def rollback(what: tuple[str, int | None], format_type: str) -> None:
    """Roll the configuration back to a revision: TYPE:REVISION."""
    kind, revision = what
    if revision is None:
        raise click.UsageError(f"Say to which revision: {kind}:REVISION.")
    answer = client().configs.rollback(kind, revision)
    echo(answer, format_type, lambda _: f"{kind} is as it was at revision {revision}.")


def _read(file: str) -> dict[str, Json]:
    """The fields to change, from JSON or YAML; only YAML needs a parser that is slow to import."""
    text = read_text(file, dash=True)
    try:
        document = json.loads(text)
    except ValueError:
        return tool("config_file").read_object(text, "<stdin>" if file == "-" else file)
    if not isinstance(document, dict):
        raise Invalid(f"{file} must have one object with the fields to change.")
    return document


def _value(text: str) -> Json:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _refuse_subpools(kind: str) -> None:
    """Subpools are not configured here: only their history is shown."""
    if kind == "SUBPOOL":
        raise click.UsageError(
            f"SUBPOOL has only a history here; see `{program()} pool subpool --help`."
        )


def _step(answer: Json, name: str, where: str) -> Json:
    """Look up a name in an answer, past the level that has all objects of a kind."""
    if isinstance(answer, Mapping) and name not in answer:
        for key in _NAMED:
            if key in answer:
                answer = answer[key]
                break
    if isinstance(answer, list):
        answer = {str(each.get("name")): each for each in answer if isinstance(each, Mapping)}
    if not isinstance(answer, Mapping) or name not in answer:
        raise NotFound(f"{where} has no {name}.")
    return answer[name]


def _title(kind: str, name: str | None) -> str:
    return kind if name is None else f"{kind} {name}"
