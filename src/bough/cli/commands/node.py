"""`bough node`: arguments of the commands on machines. Must not know any rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from bough.cli.output import count
from bough.cli.ruled import NOTHING, render_ruled
from bough.cli.server_commands import (
    ServerGroup,
    client,
    echo,
    echo_failure,
    format_option,
    try_all,
)
from bough.cli.text.nodes import whole_amount


@click.group(cls=ServerGroup)
def node() -> None:
    """Nodes: which take work, and which must not."""


@node.command("list")
@format_option
def list_nodes(format_type: str) -> None:
    """List nodes with what is used of them."""
    answer: Any = client().nodes.list()
    echo(answer, format_type, lambda each: render_nodes(each["nodes"]))


@node.command()
@click.argument("names", metavar="NODE...", nargs=-1, required=True)
@format_option
@click.pass_context
def cordon(context: click.Context, names: tuple[str, ...], format_type: str) -> None:
    """Let nothing new onto nodes; what runs goes on."""
    ask = client().nodes.cordon
    _tell_each(context, names, format_type, ask, lambda name, _: f"Node {name} is cordoned.")


@node.command()
@click.argument("names", metavar="NODE...", nargs=-1, required=True)
@format_option
@click.pass_context
def uncordon(context: click.Context, names: tuple[str, ...], format_type: str) -> None:
    """Let work onto nodes again."""
    ask = client().nodes.uncordon
    _tell_each(context, names, format_type, ask, lambda name, _: f"Node {name} takes work.")


@node.command()
@click.argument("names", metavar="NODE...", nargs=-1, required=True)
@click.option(
    "--leave", is_flag=True, help="Let what runs go on to its end, instead of moving it elsewhere."
)
@format_option
@click.pass_context
def drain(context: click.Context, names: tuple[str, ...], leave: bool, format_type: str) -> None:
    """Empty nodes. Nothing new comes, and what runs starts again elsewhere, or ends there."""
    asked = client().nodes
    _tell_each(
        context,
        names,
        format_type,
        lambda name: asked.drain(name, leave=leave),
        lambda _, answer: _drained(answer),
    )


def render_nodes(nodes: Any) -> str:
    """A line for each node."""
    if not nodes:
        return "There are no nodes."
    rows = [
        (
            each["name"],
            each["status"],
            each["tasks"],
            f"{each['used_gpu']}/{each['gpu']}",
            f"{_number(each['used_cpu'])}/{_number(each['cpu'])}",
            _memory(each),
            each["pools"] or NOTHING,
            each["backend"],
        )
        for each in nodes
    ]
    header = ("Node", "Status", "Tasks", "GPU [#]", "CPU [#]", "Memory [Gi]", "Pools", "Backend")
    return render_ruled(header, rows)


def _tell_each(
    context: click.Context,
    names: tuple[str, ...],
    format_type: str,
    ask: Callable[[str], Any],
    render: Callable[[str, Any], str],
) -> None:
    """Do it with every node, and say what came of each."""
    try_all(
        context,
        names,
        lambda name: echo(ask(name), format_type, lambda answer: render(name, answer)),
        lambda _, error: echo_failure(error, format_type),
    )


def _memory(node: Any) -> str:
    used = whole_amount(node["used_memory"], "memory", up=True)
    return f"{used}/{whole_amount(node['memory'], 'memory', up=False)}"


def _drained(answer: Any) -> str:
    text = f"Node {answer['node']['name']} takes nothing new; "
    told, left = answer["told"], answer["left"]
    parts = [
        f"{count(told, 'task')} told to end" if told else "",
        f"{count(left, 'task')} left to run to the end" if left else "",
    ]
    return text + (", ".join(part for part in parts if part) or "nothing runs on it") + "."


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
