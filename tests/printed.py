"""What the commands that read files print as JSON, without starting a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec

import msgspec

Arguments = ParamSpec("Arguments")


def as_json(tool: Callable[Arguments, msgspec.Struct]) -> Callable[Arguments, Any]:
    """A tool that answers in plain data, as `--format-type json` prints it."""

    def answer(*arguments: Arguments.args, **options: Arguments.kwargs) -> Any:
        return msgspec.to_builtins(tool(*arguments, **options), str_keys=True)

    return answer
