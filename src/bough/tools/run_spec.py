"""The workflow of one command, as `bough run` submits it and people keep it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from bough.formats.workflow.write_workflow import Written, write_literally

TASK = "main"
#: What only starts something else, after which the workflow is named.
_STARTERS = re.compile(
    r"(?:python|pypy|perl|ruby|node|julia|Rscript|bash|sh|zsh|torchrun)[0-9.]*\Z"
)
#: What would name a variable of the task, `$(NAME)`.
_REFERENCE = re.compile(r"\$\([^)]+\)")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
#: Short enough for the number that follows it.
_LONGEST = 40


def make_spec(
    command: Sequence[str],
    *,
    name: str | None,
    image: str | None,
    resources: Mapping[str, int | str],
    environment: Mapping[str, str],
    timeout: str | None,
) -> str:
    """The YAML of a workflow with one task that runs the command."""
    task: dict[str, Written] = {"name": TASK}
    if image is not None:
        task["image"] = image
    task["command"] = [_REFERENCE.sub(r"$\g<0>", each) for each in command]
    if environment:
        task["environment"] = dict(environment)
    workflow: dict[str, Written] = {"name": name or name_of(command)}
    if timeout is not None:
        workflow["timeout"] = {"exec_timeout": timeout}
    workflow["resources"] = {"default": dict(resources)}
    workflow["tasks"] = [task]
    return write_literally({"workflow": workflow})


def name_of(command: Sequence[str]) -> str:
    """A name for a command: that of its program, or of the script that an interpreter runs."""
    words = [os.path.basename(each) for each in command[:2]]
    script = len(words) > 1 and not words[1].startswith("-") and _STARTERS.match(words[0])
    word = os.path.splitext(words[1])[0] if script else words[0]
    name = _NOT_IN_NAMES.sub("-", word)[:_LONGEST].lstrip("0123456789-_").rstrip("-_")
    return name or "run"
