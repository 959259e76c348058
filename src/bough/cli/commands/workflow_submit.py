"""Submitting a workflow, checking one, starting one again."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bough.cli.command import Command
from bough.cli.exit_codes import REFUSED
from bough.cli.file_commands import tool
from bough.cli.name_arguments import POOL, id_argument, start_options
from bough.cli.options import PRIORITIES, format_option, read_pairs, together
from bough.cli.output import echo, printable
from bough.cli.screen import program
from bough.cli.server_commands import choose_pool, client
from bough.cli.text.workflows import render_ended, render_submitted
from bough.cli.transfers import upload_option, upload_project
from bough.cli.workflow_watching import COMPLETED, Watch
from bough.errors import Invalid

if TYPE_CHECKING:
    from bough.api.workflows import Submission
    from bough.client import Client
    from bough.client.addresses import Parameter

#: What a server keeps at most, with room to spare.
MAXIMUM_BYTES = 16 << 20
WARNING = "WARNING: LOW priority can be preempted during the run."
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_-]*-[0-9]+")


spec_options = together(
    click.option(
        "--set",
        "variables",
        multiple=True,
        metavar="NAME=VALUE",
        help="Set a template variable: a number, true, false or text, as in YAML.",
    ),
    click.option(
        "--set-string",
        "strings",
        multiple=True,
        metavar="NAME=VALUE",
        help="Set a template variable to text, even if it looks like a number.",
    ),
    click.option(
        "--pool",
        "-p",
        type=POOL,
        help="The pool or subpool (default: your default pool).",
    ),
    click.option(
        "--label",
        "labels",
        multiple=True,
        metavar="NAME=VALUE",
        help="Add a label; repeatable.",
    ),
)
env_option = click.option(
    "--set-env",
    "env",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set an environment variable in every task; repeatable.",
)


@click.command(cls=Command)
@click.argument("file", metavar="FILE|ID", type=click.Path(allow_dash=True))
@spec_options
@env_option
@click.option(
    "--priority",
    type=PRIORITIES,
    help="HIGH and NORMAL (default) stay within the quota; LOW may exceed it and be preempted.",
)
@start_options
@upload_option
@click.option("--dry-run", is_flag=True, help="Print the rendered spec, and do not submit it.")
@click.option(
    "--wait",
    is_flag=True,
    help="Wait until the workflow has ended; the exit code is 1 if it failed.",
)
@format_option
def submit(
    file: str,
    pool: str | None,
    priority: str | None,
    dry_run: bool,
    wait: bool,
    format_type: str,
    **values: Any,
) -> None:
    """Submit a workflow. FILE is YAML, or - for standard input; ID repeats an earlier workflow."""
    text = _read(file)
    asked = client()
    env = values.pop("env")
    read_pairs("--set-env", env)
    query: dict[str, Parameter] = {"env_vars": list(env)}
    query |= {name: list(values.pop(name)) for name in ("after", "afterok")}
    terms = {name: values.pop(name) for name in ("retries", "array")}
    query |= {name: each for name, each in terms.items() if each is not None}
    if dry_run:
        query["dry_run"] = True
    chosen = choose_pool(asked, pool)
    if not dry_run:
        query |= upload_project(asked, chosen, format_type)
    order = Order(chosen, priority, query, **values)
    again = text is None
    answer = _send_again(asked, order, file) if again else send(asked, order, file, text)
    if dry_run:
        echo(answer, format_type, lambda each: (each.spec or "").rstrip("\n"))
        return
    if not wait:
        echo(answer, format_type, render_submitted)
        warn(answer, priority, to_errors=format_type == "json")
        return
    warn(answer, priority, to_errors=True)
    watch = Watch(asked, answer.name)
    ended = watch.until_ended() if answer.elements is None else watch.until_array_ended()
    echo(ended, format_type, lambda each: render_ended([each]))
    if ended.status != COMPLETED:
        click.get_current_context().exit(REFUSED)


@click.command(cls=Command)
@click.argument("file", metavar="FILE", type=click.Path(allow_dash=True))
@spec_options
@click.option(
    "--priority",
    type=PRIORITIES,
    help="The priority to check with (default: NORMAL).",
)
@click.option("--strict-osmo", is_flag=True, help="Also refuse what an OSMO server would refuse.")
@format_option
def validate(
    file: str,
    pool: str | None,
    priority: str | None,
    strict_osmo: bool,
    format_type: str,
    **values: tuple[str, ...],
) -> None:
    """Check whether a workflow would be accepted."""
    text = _read(file)
    if text is None:
        raise Invalid(f"There is no file {file}.")
    asked = client()
    query: dict[str, Parameter] = {"validation_only": True}
    if strict_osmo:
        query["strict_osmo"] = True
    order = Order(choose_pool(asked, pool), priority, query, **values)
    answer = send(asked, order, file, text)
    echo(answer, format_type, lambda each: each.logs or "")
    warn(answer, None, to_errors=format_type == "json")


@click.command(cls=Command)
@id_argument
@click.option(
    "--pool",
    "-p",
    type=POOL,
    help="The pool or subpool (default: the one it was in).",
)
@format_option
def restart(name: str, pool: str | None, format_type: str) -> None:
    """Submit a failed workflow again, without its completed groups."""
    asked = client()
    answer = asked.workflows.restart(pool or asked.workflows.get(name).pool, name)
    echo(answer, format_type, render_submitted)
    warn(answer, None, to_errors=format_type == "json")


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
        raise Invalid(f"There is no file {file}, and it is not a workflow's ID either.") from None
    except OSError as error:
        raise Invalid(f"{file} cannot be read: {error.strerror}.") from None
    if len(content) > MAXIMUM_BYTES:
        raise Invalid(f"{file} is larger than {MAXIMUM_BYTES >> 20} MiB.")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise Invalid(f"{file} is not UTF-8 text.") from None


class Order(NamedTuple):
    """What is asked for besides the spec."""

    pool: str
    priority: str | None
    query: dict[str, Parameter]
    #: `NAME=VALUE` each.
    variables: tuple[str, ...]
    strings: tuple[str, ...]
    labels: tuple[str, ...]

    def checked(self) -> dict[str, Parameter]:
        """The query with the labels, once all pairs are known to be pairs."""
        read_pairs("--set", self.variables)
        read_pairs("--set-string", self.strings)
        read_pairs("--label", self.labels)
        return {**self.query, "label": list(self.labels)}


def _send_again(asked: Client, order: Order, name: str) -> Submission:
    """Submit an earlier workflow once more."""
    query = order.checked()
    if order.variables or order.strings:
        raise Invalid(
            f"{name} is submitted again as it was rendered, so nothing can be set.",
            hint=f"change its template: {program()} workflow spec {name} --template",
        )
    return asked.workflows.submit_again(order.pool, name, priority=order.priority, query=query)


def send(asked: Client, order: Order, file: str, text: str) -> Submission:
    """Submit the text of a file, with the contents of the files that it names."""
    query = order.checked()
    variables, strings, template = order.variables, order.strings, None
    if "localpath" in text and not query.get("dry_run"):
        files = tool("workflow_files")
        if files.must_be_rendered(text):
            rendered = asked.workflows.submit(
                order.pool,
                text,
                variables=variables,
                string_variables=strings,
                query={"dry_run": True},
            )
            text, template, variables, strings = rendered.spec or "", text, (), ()
        text, warnings = files.inline(text, os.path.dirname(file) or ".")
        for warning in warnings:
            click.echo(printable(f"WARNING: {warning}"), err=True)
    return asked.workflows.submit(
        order.pool,
        text,
        priority=order.priority,
        variables=variables,
        string_variables=strings,
        template=template,
        query=query,
    )


def warn(answer: Submission, priority: str | None, *, to_errors: bool) -> None:
    """Print warnings: below the text of an answer, or beside its JSON."""
    warnings = [f"WARNING: {each}" for each in answer.warnings]
    if priority == "LOW":
        warnings.append(WARNING)
    for warning in warnings:
        if not to_errors:
            click.echo("")
        click.echo(printable(warning), err=to_errors)
