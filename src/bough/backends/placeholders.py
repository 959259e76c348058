"""Placeholders in a task's spec, such as `{{output}}`.

    {{output}}        the folder whose files are kept when the task has completed
    {{input:0}}       the folder of an input, by its number
    {{host:task}}     where another task of the group can be reached
    {{workflow_id}}   the identifier of the workflow
    {{uuid}}          its uuid, which no other workflow of any server has

Blanks are allowed within the braces. Anything else in braces is left as it is, because another
program may use it.
"""

from __future__ import annotations

import re

import msgspec

from bough.model.task_template import FileSpec, TaskTemplate

_PLACEHOLDER = re.compile(
    r"\{\{[ \t]*(?:(?P<plain>output|workflow_id|uuid)"
    r"|input[ \t]*:[ \t]*(?P<input>[0-9]{1,6})"
    r"|host[ \t]*:[ \t]*(?P<host>[A-Za-z0-9][A-Za-z0-9_.-]*))[ \t]*\}\}"
)


class Meaning(msgspec.Struct, frozen=True):
    """The values of the placeholders of one task."""

    workflow_id: str
    output: str
    inputs: tuple[str, ...] = ()
    #: Where each task of the group is reached, by name; of others it is `host`.
    hosts: dict[str, str] = {}
    host: str = "127.0.0.1"
    #: Of the workflow; empty: unknown, as of tasks that were started before it was told.
    uuid: str = ""

    def fill(self, text: str) -> str:
        """The text with every placeholder replaced; values are not searched for placeholders."""
        return _PLACEHOLDER.sub(self._replace, text) if "{{" in text else text

    def fill_template(self, template: TaskTemplate) -> TaskTemplate:
        """A task template with every placeholder replaced; base64 contents are left as they are."""
        change = msgspec.structs.replace
        return change(
            template,
            command=tuple(map(self.fill, template.command)),
            args=tuple(map(self.fill, template.args)),
            environment={name: self.fill(text) for name, text in template.environment.items()},
            files=tuple(map(self._fill_file, template.files)),
            inputs=tuple(
                each if each.url is None else change(each, url=self.fill(each.url))
                for each in template.inputs
            ),
            outputs=tuple(change(each, url=self.fill(each.url)) for each in template.outputs),
            checkpoints=tuple(
                change(each, path=self.fill(each.path), url=self.fill(each.url))
                for each in template.checkpoints
            ),
        )

    def _fill_file(self, file: FileSpec) -> FileSpec:
        contents = file.contents if file.base64 else self.fill(file.contents)
        return FileSpec(self.fill(file.path), contents, file.base64)

    def _replace(self, found: re.Match[str]) -> str:
        match found.lastgroup:
            case "plain":
                values = {"output": self.output, "workflow_id": self.workflow_id, "uuid": self.uuid}
                return values[found["plain"]] or found[0]
            case "input" if int(found["input"]) < len(self.inputs):
                return self.inputs[int(found["input"])]
            case "host":
                return self.hosts.get(found["host"], self.host)
            case _:
                return found[0]
