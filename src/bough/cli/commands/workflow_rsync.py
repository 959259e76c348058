"""`bough workflow rsync`: files of running tasks, from and to this machine."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bough.cli.command import CommandGroup
from bough.cli.name_arguments import id_argument
from bough.cli.server_commands import client
from bough.errors import Invalid, NotFound

if TYPE_CHECKING:
    from bough.client import Client

#: The working folder, as other systems call it.
_WORKSPACE = "/osmo/run/workspace"
_WORK = "osmo"


@click.group(cls=CommandGroup)
def rsync() -> None:
    """Copy files between this machine and a running task."""


@rsync.command("upload")
@id_argument
@click.argument("task")
@click.argument("path", metavar="LOCAL:REMOTE", required=False)
@click.pass_context
def upload(context: click.Context, name: str, task: str, path: str | None) -> None:
    """Copy files to a task; sends only changes.

    REMOTE is relative to the working folder of the task, or an absolute path in one of its folders.
    As with rsync, a slash at the end of a folder means its contents. Without TASK, the lead task of
    the first group is used.

    \b
    Example:
      bough workflow rsync upload train-1 main src/:src
    """  # noqa: D301  click reads the \b
    asked = client()
    task, path = _task_and_path(asked, name, task, path)
    local, remote = _split(path)
    if not Path(local).exists():
        raise NotFound(f"{local} does not exist here.")
    context.exit(_run_rsync(asked, name, task, _here(local), _there(asked, remote)))


@rsync.command("download")
@id_argument
@click.argument("task")
@click.argument("path", metavar="REMOTE:LOCAL", required=False)
@click.pass_context
def download(context: click.Context, name: str, task: str, path: str | None) -> None:
    """Copy files from a task; sends only changes.

    \b
    Example:
      bough workflow rsync download train-1 main checkpoints/:checkpoints
    """  # noqa: D301  click reads the \b
    asked = client()
    task, path = _task_and_path(asked, name, task, path)
    remote, local = _split(path)
    context.exit(_run_rsync(asked, name, task, _there(asked, remote), _here(local)))


@rsync.command("connect", hidden=True)
@id_argument
@click.argument("key")
def connect(name: str, key: str) -> None:
    """Connect standard input and output with rsync in a task."""
    from bough.client.port_forwarding import pass_through  # noqa: PLC0415

    pass_through(client().sessions, name, key)


def _task_and_path(asked: Client, name: str, task: str, path: str | None) -> tuple[str, str]:
    if path is not None:
        return task, path
    found = asked.workflows.get(name)
    if not found.groups:
        raise NotFound(f"Workflow {name} has no groups.")
    tasks = found.groups[0].tasks
    lead = next((each for each in tasks if each.lead), tasks[0])
    return lead.name, task


def _split(path: str) -> tuple[str, str]:
    left, colon, right = path.partition(":")
    if not colon or not left or not right:
        raise Invalid(f"{path}: write the two paths with a colon between, as in src/:src.")
    return left, right


def _here(path: str) -> str:
    """A local path that rsync does not mistake for one on another machine."""
    return path if path.startswith(("/", "./", "../")) else f"./{path}"


def _there(asked: Client, path: str) -> str:
    """A path of the task as a module of rsync, and the path below that."""
    if ".." in path.split("/"):
        raise Invalid(f"{path}: paths of the task cannot have .. in them.")
    folders = {_WORK: _WORKSPACE}
    folders |= {
        name: each.path for name, each in asked.sessions.plugins().rsync.allowed_paths.items()
    }
    if not path.startswith("/"):
        return f"rsync://task/{_WORK}/{path}"
    for name, folder in sorted(folders.items(), key=lambda each: -len(each[1])):
        if path == folder or path.startswith(f"{folder.rstrip('/')}/"):
            module = _WORK if name == "work" else name
            return f"rsync://task/{module}/{path[len(folder) :].lstrip('/')}"
    known = ", ".join(sorted(folders.values()))
    raise Invalid(f"{path} is in none of the folders of the task that can be reached: {known}.")


def _run_rsync(asked: Client, name: str, task: str, source: str, target: str) -> int:
    program = shutil.which("rsync")
    if program is None:
        raise NotFound("rsync is not installed on this machine.", hint="install it and try again")
    # Asked for here: what is refused is said once, and without what rsync would say of it.
    key = asked.sessions.ask_for_rsync(name, task)
    words = (sys.executable, "-m", "bough", "workflow", "rsync", "connect", name, key)
    environment = {**os.environ, "RSYNC_CONNECT_PROG": shlex.join(words)}
    options = ("--archive", "--no-owner", "--no-group", "--mkpath", "--info=stats1")
    ended = subprocess.run(  # noqa: S603 - rsync itself, without a shell
        [program, *options, "--", source, target],
        env=environment,
        check=False,
    )
    return ended.returncode
