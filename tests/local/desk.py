"""Prepares tasks in a folder of its own, for tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from bough.backends.local.errors import Unstartable
from bough.backends.local.options import LocalOptions
from bough.backends.local.preparation.prepare_task import Place, prepare
from bough.backends.local.task_command import SandboxKind
from bough.model.backend import Launch
from bough.model.task_template import TaskTemplate

SANDBOX = SandboxKind.NAMESPACES


class Desk:
    """Prepares tasks in a folder of its own."""

    def __init__(self, path: Path, **options) -> None:
        self.path = path.resolve()
        self.options = LocalOptions(self.path / "local", **options)
        self.folder = self.path / "local" / "attempts" / "a" / "task"
        self.folder.mkdir(parents=True)

    def prepare(self, template=None, sandbox=SANDBOX, gpus=(), **launch):
        template = TaskTemplate(command=("true",)) if template is None else template
        place = Place(self.options, sandbox, self.folder, "flow-1")
        return prepare(place, Launch("task-1/0", "task-1", "node", spec=template, **launch), gpus)

    def refuse(self, template, sandbox=SANDBOX, **launch) -> str:
        with pytest.raises(Unstartable) as refused:
            self.prepare(template, sandbox, **launch)
        return refused.value.message

    def files(self) -> dict[str, bytes]:
        return {
            str(each.relative_to(self.folder)): each.read_bytes()
            for each in self.folder.rglob("*")
            if each.is_file()
        }
