"""Files, folders and standard input into documents that know where they come from."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bough.errors import NotFound
from bough.formats.yaml.composer import LinedDict, LinedList, Unreadable, Value, compose

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bough.model.problem import FieldPath, Problem

MAXIMUM_FILE_BYTES = 64 << 20
#: Which files of a folder are read; a file that is named itself can have any name.
SUFFIXES = (".yaml", ".yml", ".json")
STANDARD_INPUT = "-"


class Document(msgspec.Struct, frozen=True):
    """One YAML document, or one item of a `kind: List`."""

    value: Value
    #: The file as it was named, or `<stdin>`.
    source: str
    #: Where it starts, from 1.
    line: int


def read_documents(paths: Iterable[str]) -> list[Document]:
    """Read every document of files, folders (recursively) and `-`; the first bad file raises."""
    return [document for file in find_files(paths) for document in read_file(file)]


def find_files(paths: Iterable[str]) -> list[str]:
    """The files that the paths stand for: folders are searched, in the order of names."""
    files: list[str] = []
    for path in paths:
        if path == STANDARD_INPUT or not Path(path).is_dir():
            files.append(path)
            continue
        found = sorted(_files_below(path))
        if not found:
            raise NotFound(
                f"{path}: the folder holds no YAML files",
                hint=f"files in a folder are read when they end in {', '.join(SUFFIXES)}",
            )
        files.extend(found)
    # One file may be named in several ways; it is read once.
    return list({_identity(file): file for file in reversed(files)}.values())[::-1]


def read_file(path: str) -> list[Document]:
    """Read the documents of one file (`-`: standard input); empty documents are left out."""
    source = "<stdin>" if path == STANDARD_INPUT else path
    return read_text(_decode(_read_bytes(path, source), source), source)


def read_text(text: str, source: str) -> list[Document]:
    """Read the documents of a text; empty documents are left out."""
    documents: list[Document] = []
    for value, line in compose(text, source):
        documents.extend(_unroll(value, source, line))
    return documents


def line_of(document: Document, path: FieldPath) -> int:
    """The line of a field, or of the nearest thing above it that exists."""
    value = document.value
    line = value.line if isinstance(value, (LinedDict, LinedList)) else document.line
    for part in path:
        if isinstance(value, LinedDict) and isinstance(part, str):
            found = value.line_of(part)
            if found is None:
                break
            line, value = found, value[part]
        elif isinstance(value, LinedList) and isinstance(part, int) and 0 <= part < len(value):
            line, value = value.lines[part], value[part]
        else:
            break
    return line


def locate(problem: Problem, document: Document) -> Problem:
    """Add the file and the line to a problem of a document."""
    line = line_of(document, problem.path)
    return msgspec.structs.replace(problem, source=document.source, line=line)


def _identity(path: str) -> str:
    try:
        return os.path.realpath(path)
    except ValueError:
        # No system has such a path; reading it will say so.
        return path


def _files_below(folder: str) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if name.endswith(SUFFIXES) and not name.startswith("."):
                yield os.path.join(parent, name)


def _read_bytes(path: str, source: str) -> bytes:
    try:
        if path == STANDARD_INPUT:
            data = sys.stdin.buffer.read(MAXIMUM_FILE_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(MAXIMUM_FILE_BYTES + 1)
    except FileNotFoundError:
        raise NotFound(f"{source}: no such file or folder") from None
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise Unreadable(f"cannot be read: {reason}", source) from None
    if len(data) > MAXIMUM_FILE_BYTES:
        raise Unreadable(f"larger than {MAXIMUM_FILE_BYTES >> 20} MiB, the limit", source)
    return data


def _decode(data: bytes, source: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        byte = data[error.start]
        raise Unreadable(f"not UTF-8: the byte 0x{byte:02x}", source, line, column) from None


def _unroll(value: Value, source: str, line: int) -> Iterator[Document]:
    """Give the items of a `kind: List` one by one, and anything else as it is."""
    if value is None:
        return
    if isinstance(value, LinedDict):
        line = value.line
        items = value.get("items")
        if value.get("kind") == "List" and isinstance(items, LinedList):
            for item, item_line in zip(items, items.lines, strict=True):
                yield Document(item, source, item_line)
            return
    yield Document(value, source, line)
