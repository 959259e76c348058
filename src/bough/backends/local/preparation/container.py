"""The command that runs an image with a container runner such as docker or podman.

Variables are passed in a file and not as arguments, which every user of a machine can read; the
runner itself gets none of them, because some would change what it does.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

import msgspec

from bough.backends.local.data.paths import shown, write_new
from bough.backends.local.errors import Unstartable
from bough.backends.local.options import RUNNER_VARIABLES, SEARCH_PATH
from bough.backends.local.preparation.layout import SEEN_TEMPORARY, TaskLayout
from bough.backends.local.sandbox.limits import most_processes
from bough.backends.local.task_command import Mount, TaskCommand, TaskLimits, UserAccount
from bough.model.task_template import TaskTemplate

_VARIABLES = "environment"
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,511}\Z")
_DRIVER = Path("/dev/nvidiactl")
_OWN = frozenset({"HOME", "PATH", "PWD", "USER", "LOGNAME", "LANG"})


class Containment(msgspec.Struct, frozen=True):
    """How to run an image."""

    runner: str
    #: Its command and args override those of the image, if it has them.
    template: TaskTemplate
    mounts: tuple[Mount, ...]
    gpus: tuple[int, ...]
    layout: TaskLayout
    #: Variables of the spec; others that images usually set are left to the image.
    given: frozenset[str] = frozenset()


def contain(command: TaskCommand, containment: Containment) -> TaskCommand:
    """Replace a command by one that runs it in its image."""
    image, program, args = _wanted(containment.template)
    name = container_name(command.attempt)
    argv = (
        containment.runner,
        "run",
        "--rm",
        "--name",
        name,
        "--network",
        "host",
        "--workdir",
        command.working_folder,
        *_mount_options(containment.mounts),
        *_variable_options(command.environment, containment),
        *_gpu_options(containment),
        *_limit_options(command.limits),
        *_user_options(command.account),
        *program,
        image,
        *args,
    )
    runner_environment = {"PATH": os.environ.get("PATH", SEARCH_PATH)} | {
        name: os.environ[name] for name in RUNNER_VARIABLES if name in os.environ
    }
    return msgspec.structs.replace(
        command,
        argv=argv,
        environment=runner_environment,
        working_folder=str(containment.layout.work),
        account=None,
        limits=TaskLimits(storage_bytes=command.limits.storage_bytes),
        clean_up=(containment.runner, "rm", "--force", name),
    )


def container_name(attempt: str) -> str:
    """The name of an attempt's container, which no other attempt has."""
    digest = hashlib.sha256(attempt.encode()).hexdigest()[:12]
    readable = re.sub(r"[^a-zA-Z0-9_.-]+", "-", attempt)[:60].strip("-._")
    return f"bough-{readable}-{digest}" if readable != attempt else f"bough-{attempt}"


def _wanted(template: TaskTemplate) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The image, the options that replace its program, and the arguments."""
    image = template.image or ""
    if not _IMAGE.match(image):
        raise Unstartable(f"image: {shown(image)} is not the name of an image")
    if not template.command:
        return image, (), template.args
    return image, ("--entrypoint", template.command[0]), (*template.command[1:], *template.args)


def _mount_options(mounts: tuple[Mount, ...]) -> tuple[str, ...]:
    options: list[str] = []
    for each in mounts:
        for path in (each.source, each.target):
            if ":" in path:
                raise Unstartable(f'{shown(path)} contains ":", which a container cannot have')
        options += ("--volume", f"{each.source}:{each.target}" + ("" if each.writable else ":ro"))
    return tuple(options)


def _variable_options(variables: dict[str, str], containment: Containment) -> tuple[str, ...]:
    """A file with the variables; values with line breaks become arguments."""
    told = {
        name: value
        for name, value in variables.items()
        if name not in _OWN or name in containment.given
    }
    told["TMPDIR"] = variables.get("TMPDIR", SEEN_TEMPORARY)
    lines = [f"{name}={value}\n" for name, value in told.items() if value.isprintable()]
    layout = containment.layout
    write_new(layout.secrets, (_VARIABLES,), "".join(lines).encode(), 0o600)
    others = [f"{name}={value}" for name, value in told.items() if not value.isprintable()]
    return (
        "--env-file",
        str(layout.secrets / _VARIABLES),
        *(each for pair in others for each in ("--env", pair)),
    )


def _gpu_options(containment: Containment) -> tuple[str, ...]:
    """The options for GPUs; none where GPUs are made up."""
    if not containment.gpus or not _DRIVER.exists():
        return ()
    if "podman" in Path(containment.runner).name:
        devices = (f"nvidia.com/gpu={each}" for each in containment.gpus)
        return tuple(each for device in devices for each in ("--device", device))
    return ("--gpus", '"device=' + ",".join(str(each) for each in containment.gpus) + '"')


def _limit_options(limits: TaskLimits) -> tuple[str, ...]:
    options: list[str] = []
    if limits.cpu_milli is not None:
        options += ("--cpus", f"{limits.cpu_milli / 1_000:.3f}")
    if limits.memory_bytes is not None:
        options += ("--memory", str(limits.memory_bytes))
    if limits.processes is not None:
        options += ("--pids-limit", str(min(limits.processes, most_processes())))
    return tuple(options)


def _user_options(account: UserAccount | None) -> tuple[str, ...]:
    if account is None:
        return ()
    groups = (str(each) for each in account.groups if each != account.group_id)
    return (
        "--user",
        f"{account.user_id}:{account.group_id}",
        *(each for group in groups for each in ("--group-add", group)),
    )
