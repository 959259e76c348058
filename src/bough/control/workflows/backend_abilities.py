"""Whether a backend can run what a workflow asks for at all; if not, why, before it is accepted."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from bough.errors import Invalid
from bough.model.backend import BackendAbilities
from bough.model.task_template import FileSpec, TaskTemplate
from bough.model.workflow import WorkflowSpec

#: What stands for a folder that is kept, or was.
_DATA = re.compile(r"\{\{[ \t]*(?:output|input[ \t]*:[ \t]*[0-9]+)[ \t]*\}\}")


def check_abilities(spec: WorkflowSpec, able: BackendAbilities, backend: str) -> None:
    """Refuse what the backend of a pool cannot do; everything that is wrong is told at once."""
    faults = tuple(
        f"Task {task.name}: {fault}"
        for group in spec.groups
        for task in group.tasks
        for fault in _faults(task.launch or TaskTemplate(), able, backend)
    )
    if faults:
        more = "" if len(faults) == 1 else f" (and {len(faults) - 1} more)"
        raise Invalid(f"{faults[0]}{more}", details=faults)


def _faults(task: TaskTemplate, able: BackendAbilities, backend: str) -> Iterator[str]:
    of_image = able.runs_images and able.images_have_commands and task.image
    if able.runs_commands and not task.command and not of_image:
        yield "command: is missing; a task has a program to run."
    if able.needs_images and not task.image:
        yield f"image: is missing, and backend {backend} runs tasks in images only."
    fault = able.image_fault(task.image) if able.image_fault and task.image else None
    if fault is not None:
        yield f"{fault}."
    if not able.keeps_data:
        yield from _data_faults(task, backend)
    elif able.only_results:
        yield from _url_faults(task, backend)
    for number, file in enumerate(task.files):
        if able.absolute_files and not file.path.startswith("/"):
            yield f"files[{number}].path: {file.path!r} must begin with a slash."
    most = able.file_bytes
    size = sum(map(_size, task.files))
    if most is not None and size > most:
        yield f"files: they have {size:,} bytes together; backend {backend} takes {most:,}."


def _url_faults(task: TaskTemplate, backend: str) -> Iterator[str]:
    """What is no folder of another task, where tasks only have these."""
    why = f"backend {backend} reaches no URLs, only what other tasks left."
    for number, each in enumerate(task.inputs):
        if each.url is not None:
            yield f"inputs[{number}]: {each.url} cannot be read: {why}"
        elif each.regex is not None:
            yield (
                f"inputs[{number}].regex: {each.regex!r} cannot be used: backend {backend} gives "
                "tasks all that another task left."
            )
    yield from _written_urls(task, why)


def _written_urls(task: TaskTemplate, why: str) -> Iterator[str]:
    for number, each in enumerate(task.outputs):
        yield f"outputs[{number}].url: {each.url} cannot be written: {why}"
    for number, each in enumerate(task.checkpoints):
        yield f"checkpoint[{number}].url: {each.url} cannot be written: {why}"


def _data_faults(task: TaskTemplate, backend: str) -> Iterator[str]:
    """What reads or leaves data, where none is kept."""
    why = f"backend {backend} keeps no data of tasks, as it has no volume."
    for number, each in enumerate(task.inputs):
        yield f"inputs[{number}]: {each.url or f'task {each.task}'} cannot be read: {why}"
    yield from _written_urls(task, why)
    texts = (
        *(("command", each) for each in task.command),
        *(("args", each) for each in task.args),
        *((f"environment.{name}", text) for name, text in task.environment.items()),
        *((f"files {each.path}", each.contents) for each in task.files if not each.base64),
    )
    for field, text in texts:
        found = _DATA.search(text)
        if found is not None:
            yield f"{field}: {found[0]} cannot be used: {why}"
            return


def _size(file: FileSpec) -> int:
    if not file.base64:
        return len(file.contents.encode(errors="replace"))
    try:
        return len(base64.b64decode(file.contents))
    except (binascii.Error, ValueError):
        return len(file.contents)
