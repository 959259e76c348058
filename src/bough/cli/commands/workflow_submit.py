"""Submitting a workflow, checking one, starting one again. Must not know what a spec says."""

from __future__ import annotations

import os
import re
import sys
from typing import Any, NamedTuple

import click

from bough.cli.lazy import tool
from bough.cli.output import printable
from bough.cli.server_commands import (
    PRIORITIES,
    ServerCommand,
    choose_pool,
    client,
    echo,
    format_option,
    pool_option,
    read_pairs,
)
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
        pool_option,
        click.option(
            "--set-string",
            "strings",
            multiple=True,
            metavar="NAME=VALUE",
            help="Set a variable of the template to text, also where it looks like a number.",
        ),
        click.option(
            "--set",
            "variables",
            multiple=True,
            metavar="NAME=VALUE",
            help="Set a variable of the template: a number, a truth value or text, as YAML has it.",
        ),
    ):
        function = option(function)
    return function


@click.command(cls=ServerCommand)
@click.argument("file", metavar="FILE|ID", type=click.Path(allow_dash=True))
@_spec_options
@click.option(
    "--set-env",
    "env",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a variable of the environment of every task; repeatable.",
)
@click.option(
    "--priority",
    type=PRIORITIES,
    help="HIGH and NORMAL (if not said) stay within the quota; LOW may exceed it and be preempted.",
)
@click.option("--dry-run", is_flag=True, help="Only print the spec as it would be submitted.")
@format_option
def submit(
    file: str,
    priority: str | None,
    dry_run: bool,
    env: tuple[str, ...],
    format_type: str,
    **spec: Any,
) -> None:
    """Submit a workflow. FILE is YAML, - standard input; an ID submits an earlier one again."""
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
    echo(answer, format_type, _told, indent=4)
    _warn(answer, priority, to_errors=format_type == "json")


@click.command(cls=ServerCommand)
@click.argument("file", metavar="FILE", type=click.Path(allow_dash=True))
@_spec_options
@click.option(
    "--priority",
    type=PRIORITIES,
    help="The priority it would be submitted with.",
)
@format_option
def validate(file: str, priority: str | None, format_type: str, **spec: Any) -> None:
    """Check whether a workflow would be accepted, without submitting it."""
    text = _read(file)
    if text is None:
        raise Invalid(f"There is no file {file}.")
    asked = client()
    pool = choose_pool(asked, spec["pool"])
    answer = _send(asked, pool, _Spec(file, text), spec, priority, {"validation_only": True})
    echo(answer, format_type, lambda each: each["logs"] or "", indent=4)
    _warn(answer, None, to_errors=format_type == "json")


@click.command(cls=ServerCommand)
@click.argument("name", metavar="ID")
@click.option("--pool", "-p", help="The pool, or subpool; the one it was in if not.")
@format_option
def restart(name: str, pool: str | None, format_type: str) -> None:
    """Submit a failed workflow again. Groups that were completed are left out."""
    asked = client()
    found: Any = pool or asked.workflows.get(name)["pool"]
    answer: Any = asked.workflows.restart(found, name)
    echo(answer, format_type, _told, indent=4)
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


def _told(answer: Any) -> str:
    lines = ["Workflow submit successful.", f"Workflow ID        - {answer['name']}"]
    if answer.get("overview"):
        lines.append(f"Workflow Overview  - {answer['overview']}")
    if answer.get("dashboard_url"):
        lines.append(f"Workflow Dashboard - {answer['dashboard_url']}")
    return "\n".join(lines)


def _warn(answer: Any, priority: str | None, *, to_errors: bool) -> None:
    """What somebody should know; beside the answer where that is for a program."""
    warnings = [f"WARNING: {each}" for each in answer.get("warnings") or ()]
    if priority == "LOW":
        warnings.append(WARNING)
    for warning in warnings:
        if not to_errors:
            click.echo("")
        click.echo(printable(warning), err=to_errors)
