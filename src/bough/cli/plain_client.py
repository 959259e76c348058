"""The client with answers as plain dictionaries, for commands that do not read the types yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec


class PlainClient:
    """Passes everything on to a client, or one of its subjects, and flattens the answers."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if callable(found):
            return lambda *arguments, **options: _plain(found(*arguments, **options))
        return found if isinstance(found, str) else PlainClient(found)


def _plain(answer: Any) -> Any:
    return answer if isinstance(answer, Iterator) else msgspec.to_builtins(answer)
