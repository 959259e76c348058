"""What a task is made of where it runs: its command, files, data and secrets.

Written by people in a workflow, kept with it, and read by backends alone.
"""

from __future__ import annotations

import msgspec


class FileSpec(msgspec.Struct, frozen=True):
    """A file that is there before the task starts."""

    path: str
    contents: str
    #: The contents are bytes, written in base64.
    base64: bool = False


class InputSpec(msgspec.Struct, frozen=True):
    """Data that a task reads: what another task wrote, or what is found at a URL."""

    task: str | None = None
    #: Of another workflow, by identifier; `None`: of its own.
    workflow: str | None = None
    url: str | None = None
    #: Only files whose path matches.
    regex: str | None = None


class OutputSpec(msgspec.Struct, frozen=True):
    """Where the folder of a task's results is copied when the task is completed."""

    url: str
    regex: str | None = None


class CheckpointSpec(msgspec.Struct, frozen=True):
    """A folder that is copied again and again while the task runs, and once when it ends."""

    path: str
    url: str
    frequency_s: int
    regex: str | None = None


class CredentialUse(msgspec.Struct, frozen=True):
    """A credential of the submitting user that a task can see."""

    name: str
    #: A folder with one file for each key; or
    mount: str | None = None
    #: environment variables, each with the key that it gets.
    variables: dict[str, str] = {}


class TaskTemplate(msgspec.Struct, frozen=True):
    """How one task is run. Placeholders such as `{{output}}` are filled in by the backend."""

    image: str | None = None
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    files: tuple[FileSpec, ...] = ()
    inputs: tuple[InputSpec, ...] = ()
    outputs: tuple[OutputSpec, ...] = ()
    checkpoints: tuple[CheckpointSpec, ...] = ()
    credentials: tuple[CredentialUse, ...] = ()
    #: The URL of a folder in the data of a pool that is copied into its working folder first.
    project: str | None = None
    #: Whether URLs of object stores mean these stores. In workflows that an earlier version took
    #: they stand for folders of the machine where the task runs.
    opens_stores: bool = False
    #: Folders of nodes that it asks to see, by their paths there.
    mounts: tuple[str, ...] = ()
