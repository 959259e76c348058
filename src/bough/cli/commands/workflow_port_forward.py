"""`bough workflow port-forward`: ports of running tasks on this machine."""

from __future__ import annotations

import sys

import click

from bough.cli.command import Command
from bough.cli.name_arguments import id_argument
from bough.cli.server_commands import client
from bough.errors import Invalid

_MOST_PORTS = 30
_LOOPBACK = ("localhost", "127.0.0.1")


@click.command("port-forward", cls=Command)
@id_argument
@click.argument("task")
@click.argument("ports", metavar="[PORT[:PORT]]...", nargs=-1)
@click.option("--port", "listed", metavar="PORTS", help="Ports as a list: 8000-8010,9000:80.")
@click.option("--udp", is_flag=True, help="Forward UDP datagrams instead of TCP connections.")
@click.option(
    "--host",
    type=click.Choice(_LOOPBACK),
    default=_LOOPBACK[0],
    help="The address to listen on; always the loopback.",
)
def port_forward(
    name: str, task: str, ports: tuple[str, ...], listed: str | None, udp: bool, host: str
) -> None:
    """Forward ports of this machine to ports of a task.

    PORT uses the same number on both sides; LOCAL:TASK uses two, and LOCAL 0 picks a free one. Only
    programs on this machine can connect. Runs until you interrupt it or the task ends.

    \b
    Example:
      bough workflow port-forward train-1 main 6006
    """  # noqa: D301  click reads the \b
    from bough.client.port_forwarding import LOOPBACK, ForwardedPort, Forwarder  # noqa: PLC0415

    del host
    wanted = _read_ports([*ports, *(listed or "").split(",")])
    asked = client()
    forwarder = Forwarder(
        asked.sessions, name, task, lambda text: click.echo(f"warning: {text}", err=True)
    )
    for local, remote in wanted:
        own = forwarder.add(ForwardedPort(local, remote), udp=udp)
        kind = "datagrams of " if udp else ""
        click.echo(f"Forwarding {kind}{LOOPBACK}:{own} to port {remote} of {task}")
    sys.stdout.flush()
    try:
        forwarder.run()
    except KeyboardInterrupt:
        click.echo("stopped", err=True)


def _read_ports(texts: list[str]) -> list[tuple[int, int]]:
    """Pairs of ports, here and in the task."""
    found: list[tuple[int, int]] = []
    for text in filter(None, (each.strip() for each in texts)):
        left, _, right = text.partition(":")
        local, remote = _read_range(left, text), _read_range(right or left, text)
        if len(local) != len(remote):
            raise Invalid(f"{text}: the two sides must have as many ports.")
        found += zip(local, remote, strict=True)
    if not found or len(found) > _MOST_PORTS:
        raise Invalid(f"Say which ports to forward, 1 to {_MOST_PORTS} of them, as in 8080:80.")
    wrong = next((pair for pair in found if not 0 < pair[1] < 1 << 16 or pair[0] >= 1 << 16), None)
    if wrong is not None:
        raise Invalid(f"{wrong[0]}:{wrong[1]}: ports are 1 to 65535.")
    return found


def _read_range(text: str, whole: str) -> range:
    first, dash, last = text.partition("-")
    if not first.isascii() or not first.isdigit() or (dash and not last.isdigit()):
        raise Invalid(
            f"{whole[:40]!r} is not a port or range of ports like 8080, 8080:80 or 80-90."
        )
    return range(int(first[:6]), int((last or first)[:6]) + 1)
