"""Reads the local files that a workflow names, so that they can be sent along."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from bough.errors import Invalid
from bough.formats.workflow.inline_files import InlinedWorkflow, inline_files
from bough.formats.workflow.templates import is_template

#: More than a workflow can hold of one file; nothing beyond is read.
MAXIMUM_BYTES = 2 << 20


def must_be_rendered(text: str) -> bool:
    """Whether a workflow is a template, so that its files are known only when it is rendered."""
    return is_template(text)


def inline(text: str, folder: str) -> InlinedWorkflow:
    """The workflow with the contents of the files that it names, from this folder on."""
    return inline_files(text, lambda path: _read(Path(folder, path), path))


def _read(place: Path, path: str) -> bytes:
    try:
        if not stat.S_ISREG(os.stat(place).st_mode):
            raise Invalid(f"localpath {path[:200]!r}: {place} is not a file.")
        with place.open("rb") as file:
            content = file.read(MAXIMUM_BYTES + 1)
    except FileNotFoundError:
        raise Invalid(f"localpath {path[:200]!r}: there is no file {place}.") from None
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise Invalid(f"localpath {path[:200]!r}: {place} cannot be read: {reason}.") from None
    if len(content) > MAXIMUM_BYTES:
        raise Invalid(
            f"localpath {path[:200]!r}: {place} is larger than {MAXIMUM_BYTES >> 20} MiB, more "
            "than a workflow can hold."
        )
    return content
