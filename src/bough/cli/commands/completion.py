"""`bough completion`: the script by which a shell completes commands."""

from __future__ import annotations

import click

from bough.cli.command import Command

#: The `\\b` tells click to keep the lines as they are.
_HELP = """Print the script for shell completion.

\b
bash: add to ~/.bashrc    eval "$(bough completion bash)"
zsh:  add to ~/.zshrc     eval "$(bough completion zsh)"
fish: bough completion fish > ~/.config/fish/completions/bough.fish
"""


@click.command(cls=Command, help=_HELP)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script for shell completion."""
    from click.shell_completion import get_completion_class  # noqa: PLC0415  only here

    root = context.find_root()
    name = root.info_name or "bough"
    found = get_completion_class(shell)
    if found is not None:
        variable = f"_{name.replace('-', '_').upper()}_COMPLETE"
        click.echo(found(root.command, {}, name, variable).source())
