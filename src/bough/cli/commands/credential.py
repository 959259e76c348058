"""`bough credential`: arguments of the commands on credentials. Must not know any rule."""

from __future__ import annotations

from typing import Any

import click

from bough.cli.ruled import render_ruled, show_time
from bough.cli.server_commands import (
    Capitals,
    ServerGroup,
    client,
    echo,
    format_option,
    read_pairs,
    read_text,
)


@click.group(cls=ServerGroup)
def credential() -> None:
    """Secrets that your workflows may use; nobody is shown them again."""


@credential.command("set")
@click.argument("name")
@click.option(
    "--type",
    "kind",
    type=Capitals(["REGISTRY", "DATA", "GENERIC"]),
    required=True,
    help="What it is for.",
)
@click.option("--payload", multiple=True, metavar="NAME=VALUE", help="A part of it; repeatable.")
@click.option(
    "--payload-file", multiple=True, metavar="NAME=FILE", help="A part, read from a file."
)
@format_option
def set_credential(
    name: str,
    kind: str,
    payload: tuple[str, ...],
    payload_file: tuple[str, ...],
    format_type: str,
) -> None:
    """Keep a secret. A file keeps it out of the shell's history."""
    parts = read_pairs("--payload", payload)
    for part, file in read_pairs("--payload-file", payload_file).items():
        parts[part] = read_text(file).rstrip("\n")
    if not parts:
        raise click.UsageError("Say what is secret: --payload or --payload-file.")
    answer = client().credentials.set(name, kind, parts)
    echo(answer, format_type, lambda _: f"Credential {name} is set.")


@credential.command("list")
@format_option
def list_credentials(format_type: str) -> None:
    """List your credentials, without what is secret."""
    echo({"credentials": client().credentials.list()}, format_type, _render)


@credential.command()
@click.argument("name")
@format_option
def delete(name: str, format_type: str) -> None:
    """Forget a secret."""
    answer = client().credentials.delete(name)
    echo(answer, format_type, lambda _: f"Credential {name} is deleted.")


def _render(answer: Any) -> str:
    if not answer["credentials"]:
        return "There are no credentials."
    rows = [
        (each["cred_name"], each["cred_type"], each.get("keys"), show_time(each.get("created_at")))
        for each in answer["credentials"]
    ]
    return render_ruled(("Name", "Type", "Parts", "Created At"), rows)
