"""Renders one template; a program of its own, which `rendering` starts without any rights.

It reads a request from standard input, drops its rights, and writes one answer. It must not import
anything of this package: that costs time, and holds what is worth stealing.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import sys
from types import TracebackType
from typing import Any

import jinja2
import jinja2.debug
import jinja2.exceptions
import jinja2.meta
import jinja2.sandbox

NOBODY = 65_534
#: The exit code where there is too little memory even for an answer.
OUT_OF_MEMORY = 3

_UNDEFINED = re.compile(r"'([^']*)' is undefined\Z")
_ESCAPED = re.compile(r"access to attribute '([^']*)'")


def give_up(limits: dict[str, int]) -> None:
    """Leave nothing but computing, for a while."""
    most = (
        (resource.RLIMIT_CPU, limits["cpu_s"]),
        (resource.RLIMIT_AS, limits["memory_bytes"]),
        (resource.RLIMIT_FSIZE, limits["answer_bytes"]),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 3),
    )
    for what, value in most:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(what, (value, value))
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


def render(text: str, values: dict[str, Any], most: int) -> dict[str, Any]:
    """The text that a template gives, and the variables that it uses."""
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        undefined=jinja2.StrictUndefined, keep_trailing_newline=True, autoescape=False
    )
    # What gives another text each time.
    del environment.filters["random"], environment.globals["lipsum"]
    used = jinja2.meta.find_undeclared_variables(environment.parse(text))
    parts: list[str] = []
    size = 0
    for part in environment.from_string(text).generate(values):
        size += len(part)
        if size > most:
            return {"error": f"gives more than {most:,} characters", "line": 0}
        parts.append(part)
    return {"text": "".join(parts), "used": sorted(used)}


def explain(error: Exception) -> dict[str, Any]:
    """What is wrong, as far as it can be told, and on which line."""
    line = error.lineno if isinstance(error, jinja2.TemplateSyntaxError) else 0
    line = line or line_of(error.__traceback__)
    if isinstance(error, jinja2.UndefinedError):
        found = _UNDEFINED.match(error.message or "")
        if found:
            return {"undefined": found[1], "line": line, "error": error.message}
    message = str(error)
    if isinstance(error, jinja2.exceptions.SecurityError):
        found = _ESCAPED.match(message)
        message = f"the attribute {found[1]!r} must not be used" if found else message
    elif isinstance(error, TypeError) and "no loader" in message:
        message = "it cannot include, import or extend anything"
    elif isinstance(error, OverflowError) and "MAX_RANGE" in message:
        message = f"a range is longer than {jinja2.sandbox.MAX_RANGE:,}"
    elif isinstance(error, RecursionError):
        message = "it is nested too deep"
    elif isinstance(error, MemoryError):
        message = "it takes too much memory"
    elif isinstance(error, OSError):
        # What it says is about the files of this machine.
        message = "it needs something that a template cannot have"
    message = message.removesuffix(".") or type(error).__name__
    return {"error": message[:300], "line": line}


def line_of(trace: TracebackType | None) -> int:
    """The line of the template in which an error came up."""
    line = 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def warm_up() -> None:
    """Import what Jinja imports when it needs it, which is too late once everything is given up."""
    late = (
        "{{ [1]|pprint }}{{ 'a b'|wordwrap(1) }}{{ '<a>'|striptags }}",
        "{% include 'x' %}",
        "{{ ''.__class__ }}",
    )
    for text in late:
        with contextlib.suppress(Exception):
            render(text, {}, 100)


def main() -> None:
    """Answer one request."""
    request = json.load(sys.stdin)
    warm_up()
    give_up(request["limits"])
    try:
        answer = render(request["text"], request["values"], request["limits"]["characters"])
    except Exception as error:  # whatever a template does has an answer
        answer = explain(error)
    json.dump(answer, sys.stdout, ensure_ascii=True)
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        main()
    except MemoryError:
        sys.exit(OUT_OF_MEMORY)
