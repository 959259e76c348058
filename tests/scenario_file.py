"""Scenario files: a cluster as YAML, what happens to it, and what must be decided.

One file is documentation and test at once. This module reads the frame (title, design, story,
objects) and hands on the steps, which the tests of each kind read.
"""

from __future__ import annotations

import msgspec

from bough.formats.yaml.composer import LinedDict
from bough.formats.yaml.documents import Document, read_file
from bough.formats.yaml.fields import Fields, Reading
from bough.model.problem import Problem


class Scenario(msgspec.Struct, frozen=True):
    """One scenario, with its steps as they were written."""

    title: str
    #: Which design, and where in it, the scenario comes from.
    design: str
    #: What happens, in a sentence or two.
    story: str
    #: The objects that there are when it begins.
    objects: tuple[Document, ...]
    #: What happens, one after the other, each with what must be decided.
    steps: tuple[Fields, ...]
    fields: Fields

    def finish(self) -> list[Problem]:
        """All that is wrong with the file; a field that was not read by now is unknown."""
        self.fields.finish()
        return self.fields.reading.problems


def read_scenario(path: str) -> Scenario:
    """Read a scenario file, which is one document."""
    (document,) = read_file(path)
    fields = Reading(document).fields()
    value = document.value
    objects = value.get("objects") if isinstance(value, LinedDict) else None
    fields.ignore("objects")
    return Scenario(
        title=fields.text("title"),
        design=fields.text("design"),
        story=fields.text("story").strip(),
        objects=tuple(
            Document(item, document.source, item.line)
            for item in (objects if isinstance(objects, list) else ())
            if isinstance(item, LinedDict)
        ),
        steps=tuple(fields.children("steps")),
        fields=fields,
    )
