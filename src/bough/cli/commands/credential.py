"""`bough credential`: arguments of the commands on credentials."""

from __future__ import annotations

import click

from bough.cli.command import CommandGroup
from bough.cli.options import Capitals, format_option, read_pairs, read_text
from bough.cli.output import echo
from bough.cli.screen import utc_option
from bough.cli.server_commands import client
from bough.cli.text.people import render_credentials


@click.group(cls=CommandGroup)
def credential() -> None:
    """Secrets for your workflows. A stored secret is never shown again."""


@credential.command("set")
@click.argument("name")
@click.option(
    "--type",
    "kind",
    type=Capitals(["REGISTRY", "DATA", "GENERIC"]),
    required=True,
    help="The type of the secret.",
)
@click.option(
    "--payload", multiple=True, metavar="NAME=VALUE", help="A part of the secret; repeatable."
)
@click.option(
    "--payload-file",
    multiple=True,
    metavar="NAME=FILE",
    help="A part, read from a file; repeatable.",
)
@format_option
def set_credential(
    name: str,
    kind: str,
    payload: tuple[str, ...],
    payload_file: tuple[str, ...],
    format_type: str,
) -> None:
    """Store a secret. --payload-file keeps it out of the shell's history."""
    parts = read_pairs("--payload", payload)
    for part, file in read_pairs("--payload-file", payload_file).items():
        parts[part] = read_text(file).rstrip("\n")
    if not parts:
        raise click.UsageError("A secret is missing: give --payload or --payload-file.")
    answer = client().credentials.set(name, kind, parts)
    echo(answer, format_type, lambda _: f"Credential {name} is set.")


@credential.command("list")
@utc_option
@format_option
def list_credentials(format_type: str) -> None:
    """List your credentials, without the secrets."""
    echo(client().credentials.list(), format_type, render_credentials, key="credentials")


@credential.command()
@click.argument("name")
@format_option
def delete(name: str, format_type: str) -> None:
    """Delete a credential."""
    answer = client().credentials.delete(name)
    echo(answer, format_type, lambda _: f"Credential {name} is deleted.")
