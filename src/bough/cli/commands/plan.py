"""`bough plan` and `bough why`: arguments of the commands."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bough.cli.command import Command
from bough.cli.file_commands import (
    echo_found,
    files_argument,
    lenient_option,
    policy_option,
    tool,
)
from bough.cli.options import format_option
from bough.cli.output import printable
from bough.cli.text.certificates import ExplainedCertificate, render_certificate
from bough.cli.text.plans import render_plan
from bough.errors import Invalid

if TYPE_CHECKING:
    from bough.api.file_answers import FileWhyAnswer, PlanAnswer

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class _FilesThenWorkload(Command):
    """A command whose last argument names a workload, after any number of files."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; a single one is a file, or else perhaps a workflow of a server."""
        try:
            return super().parse_args(ctx, [*args])
        except click.MissingParameter as error:
            only = self.make_parser(ctx).parse_args([*args])[0]["workload"]
            if isinstance(only, str) and (only == "-" or os.path.exists(only)):
                workload = next(each for each in self.params if each.name == "workload")
                raise click.MissingParameter(ctx=ctx, param=workload) from error
            if isinstance(only, str):
                asking = f"`{ctx.find_root().info_name} workflow why {printable(only)}`"
                text = f"For a workflow of a server: {asking}."
                raise click.MissingParameter(text, ctx=ctx, param=error.param) from error
            raise


def _scene_options(command: Decorated) -> Decorated:
    """What both commands take."""
    now = click.option(
        "--now",
        metavar="TIME",
        help="The time to plan for, like 2026-01-31T12:00:00Z (default: now).",
    )
    return policy_option(now(format_option(lenient_option(command))))


@click.command(cls=Command)
@files_argument
@_scene_options
def plan(
    files: tuple[str, ...], policy: str | None, now: str | None, format_type: str, lenient: bool
) -> None:
    """Show what one scheduling cycle would decide, and why.

    Reads objects of KAI (PodGroup, Queue, Topology) with plain Pods and Nodes, or objects of Kueue
    (Cohort, ClusterQueue, ResourceFlavor, LocalQueue, Workload), from YAML files, from folders of
    them, or from standard input (-).
    """
    answer: PlanAnswer = tool("plan").plan(
        files, policy=policy, now_ms=_moment_ms(now), lenient=lenient
    )
    echo_found(answer, format_type, render_plan)


@click.command(cls=_FilesThenWorkload)
@files_argument
@click.argument("workload")
@click.option("--remedies", is_flag=True, help="Also show what would help; this can take a while.")
@_scene_options
def why(
    files: tuple[str, ...],
    workload: str,
    remedies: bool,
    policy: str | None,
    now: str | None,
    format_type: str,
    lenient: bool,
) -> None:
    """Explain why a workload waits. Shows what is missing, and who holds it.

    Reads the same files as `bough plan`. WORKLOAD is the name of a PodGroup, a Pod or a Workload,
    with its namespace (ns/name) if the name is not unique.
    """
    answer: FileWhyAnswer = tool("why").why(
        files,
        workload,
        remedies=remedies,
        policy=policy,
        now_ms=_moment_ms(now),
        lenient=lenient,
    )
    write = tool("file_problems").write_amount
    echo_found(answer, format_type, lambda each: render_certificate(_explained(each), write))


def _explained(answer: FileWhyAnswer) -> ExplainedCertificate:
    growth, evicted = answer.growth, answer.eviction
    return ExplainedCertificate(
        answer.certificate,
        answer.remedies,
        growth and growth.sentence,
        evicted and (evicted.rule, evicted.sentence),
    )


def _moment_ms(text: str | None) -> int:
    """The time for which to plan, in milliseconds since 1970."""
    if text is None:
        return time.time_ns() // 1_000_000
    try:
        return tool("load_snapshot").time_ms(text)
    except Invalid as error:
        raise click.UsageError(f"--now: {error.message}.") from error
