"""Prepares tasks in a folder of its own, for tests. Must not know what is tested."""

from __future__ import annotations

from pathlib import Path

import pytest

from bough.backends.local.command import ViewKind
from bough.backends.local.errors import Unstartable
from bough.backends.local.options import LocalOptions
from bough.backends.local.preparation.prepare_task import Place, prepare
from bough.model.backend import Launch
from bough.model.task_template import Recipe

VIEW = ViewKind.NAMESPACES


class Desk:
    """Prepares tasks in a folder of its own."""

    def __init__(self, path: Path, **options) -> None:
        self.path = path.resolve()
        self.options = LocalOptions(self.path / "local", **options)
        self.folder = self.path / "local" / "attempts" / "a" / "task"
        self.folder.mkdir(parents=True)

    def prepare(self, recipe=None, view=VIEW, gpus=(), **launch):
        recipe = Recipe(command=("true",)) if recipe is None else recipe
        place = Place(self.options, view, self.folder, "flow-1")
        return prepare(place, Launch("task-1/0", "task-1", "node", spec=recipe, **launch), gpus)

    def refuse(self, recipe, view=VIEW, **launch) -> str:
        with pytest.raises(Unstartable) as refused:
            self.prepare(recipe, view, **launch)
        return refused.value.message

    def files(self) -> dict[str, bytes]:
        return {
            str(each.relative_to(self.folder)): each.read_bytes()
            for each in self.folder.rglob("*")
            if each.is_file()
        }
