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


def starts(answer: Any) -> dict[str, list[str]]:
    """By workload: the nodes of its pods."""
    return {each["workload"]: [pod["node"] for pod in each["pods"]] for each in answer["starts"]}


def waits(answer: Any) -> dict[str, str]:
    return {each["workload"]: each["sentence"] for each in answer["waits"]}


def warnings(answer: Any) -> list[tuple[str, str, str]]:
    assert {"warning"} >= {each["severity"] for each in answer["problems"]}
    return [(each["subject"], each["field"], each["message"]) for each in answer["problems"]]
