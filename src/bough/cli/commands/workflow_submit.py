"""Submitting a workflow, checking one, starting one again."""

from __future__ import annotations

import os
import re
import sys
from typing import Any, NamedTuple

import click

from bough.cli.command import Command
from bough.cli.file_commands import tool
from bough.cli.options import PRIORITIES, format_option, read_pairs
from bough.cli.output import echo, printable
from bough.cli.server_commands import choose_pool, client
from bough.cli.server_names import complete_pool, id_argument
from bough.cli.text.workflows import render_submitted
from bough.errors import Invalid

#: What a server keeps at most, with room to spare.
MAXIMUM_BYTES = 16 << 20
WARNING = "WARNING: LOW priority can be preempted during the run."
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_-]*-[0-9]+")


def _spec_options(function: Any) -> Any:
    for option in (
        click.option(
            "--label",
            "labels",
            multiple=True,
            metavar="NAME=VALUE",
            help="Add a label; repeatable.",
        ),
        click.option(
            "--pool",
            "-p",
            shell_complete=complete_pool,
            help="The pool or subpool (default: your default pool).",
        ),
        click.option(
            "--set-string",
            "strings",
            multiple=True,
            metavar="NAME=VALUE",
            help="Set a template variable to text, even if it looks like a number.",
        ),
        click.option(
            "--set",
            "variables",
            multiple=True,
            metavar="NAME=VALUE",
            help="Set a template variable: a number, true, false or text, as in YAML.",
        ),
    ):
        function = option(function)
    return function


@click.command(cls=Command)
@click.argument("file", metavar="FILE|ID", type=click.Path(allow_dash=True))
@_spec_options
@click.option(
    "--set-env",
    "env",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set an environment variable of every task; repeatable.",
)
@click.option(
    "--priority",
    type=PRIORITIES,
    help="HIGH and NORMAL (default) stay within the quota; LOW may exceed it and be preempted.",
)
@click.option("--dry-run", is_flag=True, help="Only print the rendered spec.")
@format_option
def submit(
    file: str,
    priority: str | None,
    dry_run: bool,
    env: tuple[str, ...],
    format_type: str,
    **spec: Any,
) -> None:
    """Submit a workflow. FILE is YAML, - is standard input, ID repeats a workflow."""
    text = _read(file)
    asked = client()
    pool = choose_pool(asked, spec["pool"])
    read_pairs("--set-env", env)
    query = {"env_vars": list(env), **({"dry_run": True} if dry_run else {})}
    if text is None:
        answer = _send_again(asked, pool, file, spec, priority, query)
    else:
        answer = _send(asked, pool, _Spec(file, text), spec, priority, query)
    if dry_run:
        echo(answer, format_type, lambda each: (each["spec"] or "").rstrip("\n"), indent=4)
        return
    echo(answer, format_type, render_submitted, indent=4)
    _warn(answer, priority, to_errors=format_type == "json")


@click.command(cls=Command)
@click.argument("file", metavar="FILE", type=click.Path(allow_dash=True))
@_spec_options
@click.option(
    "--priority",
    type=PRIORITIES,
    help="The priority to check it with.",
)
@format_option
def validate(file: str, priority: str | None, format_type: str, **spec: Any) -> None:
    """Check whether a workflow would be accepted."""
    text = _read(file)
    if text is None:
        raise Invalid(f"There is no file {file}.")
    asked = client()
    pool = choose_pool(asked, spec["pool"])
    answer = _send(asked, pool, _Spec(file, text), spec, priority, {"validation_only": True})
    echo(answer, format_type, lambda each: each["logs"] or "", indent=4)
    _warn(answer, None, to_errors=format_type == "json")


@click.command(cls=Command)
@id_argument
@click.option(
    "--pool",
    "-p",
    shell_complete=complete_pool,
    help="The pool or subpool (default: the one it was in).",
)
@format_option
def restart(name: str, pool: str | None, format_type: str) -> None:
    """Submit a failed workflow again, without its completed groups."""
    asked = client()
    found: Any = pool or asked.workflows.get(name)["pool"]
    answer: Any = asked.workflows.restart(found, name)
    echo(answer, format_type, render_submitted, indent=4)
    _warn(answer, None, to_errors=format_type == "json")


def _read(file: str) -> str | None:
    """The text of a spec; `None`: it is no file but the ID of a workflow."""
    try:
        if file == "-":
            content = sys.stdin.buffer.read(MAXIMUM_BYTES + 1)
        else:
            with open(file, "rb") as stream:
                content = stream.read(MAXIMUM_BYTES + 1)
    except FileNotFoundError:
        if _IDENTIFIER.fullmatch(file):
            return None
        raise Invalid(f"There is no file {file}, and it is no workflow's ID either.") from None
    except OSError as error:
        raise Invalid(f"{file} cannot be read: {error.strerror}.") from None
    if len(content) > MAXIMUM_BYTES:
        raise Invalid(f"{file} is larger than {MAXIMUM_BYTES >> 20} MiB.")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise Invalid(f"{file} is not UTF-8 text.") from None


class _Spec(NamedTuple):
    """The text of a spec, and the file that it is from."""

    file: str
    text: str


def _check_pairs(spec: dict[str, Any]) -> None:
    for option, field in (
        ("--set", "variables"),
        ("--set-string", "strings"),
        ("--label", "labels"),
    ):
        read_pairs(option, spec[field])


def _send_again(
    asked: Any,
    pool: str,
    name: str,
    spec: dict[str, Any],
    priority: str | None,
    query: dict[str, Any],
) -> Any:
    _check_pairs(spec)
    if spec["variables"] or spec["strings"]:
        raise Invalid(
            f"{name} is submitted again as it was rendered, so that nothing can be set.",
            hint=f"change its template: osmo workflow spec {name} --template",
        )
    more = {**query, "label": list(spec["labels"])}
    return asked.workflows.submit_again(pool, name, priority=priority, query=more)


def _send(
    asked: Any,
    pool: str,
    read: _Spec,
    spec: dict[str, Any],
    priority: str | None,
    query: dict[str, Any],
) -> Any:
    _check_pairs(spec)
    text, template = read.text, None
    variables = {"variables": spec["variables"], "string_variables": spec["strings"]}
    if "localpath" in text and not query.get("dry_run"):
        files = tool("workflow_files")
        if files.must_be_rendered(text):
            rendered = asked.workflows.submit(pool, text, query={"dry_run": True}, **variables)
            text, template, variables = rendered["spec"] or "", text, {}
        text = files.inline(text, os.path.dirname(read.file) or ".")
    return asked.workflows.submit(
        pool,
        text,
        priority=priority,
        template=template,
        query={**query, "label": list(spec["labels"])},
        **variables,
    )


def _warn(answer: Any, priority: str | None, *, to_errors: bool) -> None:
    """What somebody should know; beside the answer where that is for a program."""
    warnings = [f"WARNING: {each}" for each in answer.get("warnings") or ()]
    if priority == "LOW":
        warnings.append(WARNING)
    for warning in warnings:
        if not to_errors:
            click.echo("")
        click.echo(printable(warning), err=to_errors)
