"""Reading objects of Kueue from a text."""

from __future__ import annotations

from bough.formats.kueue.organisation import Read, read_organisation
from bough.formats.yaml.composer import compose
from bough.formats.yaml.documents import Document

API = "apiVersion: kueue.x-k8s.io/v1beta2\n"


def read(text: str, *, lenient: bool = False) -> Read:
    documents = [Document(value, "x.yaml", line) for value, line in compose(text, "x.yaml")]
    return read_organisation(documents, lenient=lenient)


def read_clean(text: str) -> Read:
    result = read(text)
    assert result.problems == []
    return result


def messages(text: str, *, lenient: bool = False) -> list[tuple[str, str, str, int]]:
    return [
        (each.subject, each.field, each.message, each.line)
        for each in read(text, lenient=lenient).problems
    ]
