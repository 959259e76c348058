"""The workflow of one command, as `bough run` submits it and people keep it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bough.errors import Invalid
from bough.formats.workflow.write_workflow import Written, write_literally

TASK = "main"
#: Programs that only start another one, after which the workflow is named.
_STARTERS = re.compile(
    r"(?:python|pypy|perl|ruby|node|julia|Rscript|bash|sh|zsh|torchrun)[0-9.]*\Z"
)
#: What would name a variable of the task, `$(NAME)`.
_REFERENCE = re.compile(r"\$\([^)]+\)")
#: Runs a command in an environment, if that is there: without it, the programs of the machine would
#: be run in its place, and say nothing of it. It ends as Bough does where it cannot run a command.
_IN_ENVIRONMENT = (
    'test -d "$0/bin" || { echo "There is no environment in $0 where this runs." >&2; exit 125; }; '
    'exec "$@"'
)
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
#: Where programs are looked for after those of an environment, as for tasks without one.
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: Short enough for the number that follows it.
_LONGEST = 40


class StartTerms(NamedTuple):
    """What it waits for, and how often it is tried again."""

    after: Sequence[str] = ()
    afterok: Sequence[str] = ()
    retries: int | None = None
    #: As `0-49%8`.
    array: str | None = None


def make_spec(
    command: Sequence[str],
    *,
    name: str,
    image: str | None,
    resources: Mapping[str, int | str],
    environment: Mapping[str, str],
    timeout: str | None,
    start: StartTerms | None = None,
) -> str:
    """The YAML of a workflow with one task that runs the command."""
    task: dict[str, Written] = {"name": TASK}
    if image is not None:
        task["image"] = image
    task["command"] = [_REFERENCE.sub(r"$\g<0>", each) for each in command]
    if environment:
        task["environment"] = dict(environment)
    workflow: dict[str, Written] = {"name": name}
    if timeout is not None:
        workflow["timeout"] = {"exec_timeout": timeout}
    if start is not None and start.after:
        workflow["after"] = list(start.after)
    if start is not None and start.afterok:
        workflow["afterok"] = list(start.afterok)
    if start is not None and start.array is not None:
        workflow["array"] = start.array
    if start is not None and start.retries is not None:
        task["retries"] = start.retries
    workflow["resources"] = {"default": dict(resources)}
    workflow["tasks"] = [task]
    return write_literally({"workflow": workflow})


def enter_environment(
    command: Sequence[str], venv: str | None, conda: str | None
) -> tuple[Sequence[str], dict[str, str]]:
    """A command within an environment of Python: how it is run there, and its variables."""
    if venv is not None and conda is not None:
        raise Invalid("--venv and --conda cannot be used together.")
    folder, variable = (conda, "CONDA_PREFIX") if venv is None else (venv, "VIRTUAL_ENV")
    if folder is None:
        return command, {}
    if venv is None and "/" not in folder:
        # Only conda knows where an environment of this name is.
        return ["conda", "run", "--no-capture-output", "-n", folder, *command], {}
    if not folder.startswith("/"):
        raise Invalid(
            f"--{'conda' if venv is None else 'venv'}: {folder} must begin with /: the command has "
            "a working folder of its own.",
            hint=f"name it as it is where the command runs, as {os.path.abspath(folder)}",
        )
    folder = folder.rstrip("/") or "/"
    command = ["sh", "-c", _IN_ENVIRONMENT, folder, *command]
    return command, {"PATH": f"{folder}/bin:{SEARCH_PATH}", variable: folder}


def name_of(command: Sequence[str]) -> str:
    """A name for a command: that of its program, or of the script that an interpreter runs."""
    words = [os.path.basename(each) for each in command[:2]]
    script = len(words) > 1 and not words[1].startswith("-") and _STARTERS.match(words[0])
    word = os.path.splitext(words[1])[0] if script else words[0]
    name = _NOT_IN_NAMES.sub("-", word)[:_LONGEST].lstrip("0123456789-_").rstrip("-_")
    return name or "run"
