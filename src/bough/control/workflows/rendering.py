"""Renders templates of workflows safely: each in a process of its own that can do nothing else.

The process has little time, little memory and room for a short answer, and ends with the rendering;
a template that wants more is refused. Users take turns, so that one with many templates keeps no
other waiting.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

import msgspec

from bough.control.fair_turns import FairTurns
from bough.errors import Invalid, Unavailable
from bough.formats.workflow.templates import Template, is_template, read_template, read_variables

CPU_S = 2
MEMORY_BYTES = 512 << 20
#: What a rendered workflow may have.
CHARACTERS = 4 << 20
#: The same, each character escaped, and some words around it.
ANSWER_BYTES = 12 * CHARACTERS
#: How long a rendering may take on a busy machine.
WALL_S = 20
#: How the renderer ends where there is not even enough memory to say so.
OUT_OF_MEMORY = 3
#: Renderings at one time, in all and of one user, and how long others wait for their turn.
AT_ONCE = 2
OF_ONE_USER = 1
WAIT_S = 20

_RENDERER = Path(__file__).with_name("renderer.py")
_LIMITS = {
    "cpu_s": CPU_S,
    "memory_bytes": MEMORY_BYTES,
    "answer_bytes": ANSWER_BYTES,
    "characters": CHARACTERS,
}


class Turns(Protocol):
    """Lets few users render at one time."""

    def turn(self, user: str, wait_s: float) -> AbstractContextManager[None]:
        """Wait for a turn of a user, and have it."""
        ...


def make_turns() -> FairTurns:
    """The turns of a server."""
    return FairTurns(AT_ONCE, OF_ONE_USER, "Too many templates are being rendered; try again.")


_TURNS: Turns = make_turns()


def share_turns(turns: Turns) -> None:
    """Render only when it is this process's turn, where several processes render."""
    global _TURNS  # noqa: PLW0603  said once, at the start of the process
    _TURNS = turns


class Rendered(msgspec.Struct, frozen=True):
    """The result of rendering a text."""

    text: str
    #: The text was a template, and is kept beside what came of it.
    template: str | None = None
    warnings: tuple[str, ...] = ()


def render(
    text: str, variables: Sequence[str] = (), strings: Sequence[str] = (), user: str = ""
) -> Rendered:
    """Render a text of a user with variables (`name=value`); what is no template stays as it is."""
    given = read_variables(variables, strings)
    if not is_template(text):
        useless = ("--set has no effect: the workflow is not a template.",) if given else ()
        return Rendered(text, warnings=useless)
    template = read_template(text, given)
    answer = _ask(template, user)
    if "text" not in answer:
        raise _refusal(template, answer)
    unused = [name for name in given if name not in answer["used"]]
    return Rendered(
        text=template.restore(answer["text"], CHARACTERS),
        template=text,
        warnings=(
            *template.warnings,
            *(f"The template does not use {name}, which is set." for name in unused),
        ),
    )


def _ask(template: Template, user: str) -> Any:
    """The answer of the renderer; refused where it was ended for taking too much."""
    request = json.dumps({"text": template.text, "values": template.values, "limits": _LIMITS})
    try:
        with _TURNS.turn(user, WAIT_S), _open_answer() as answer:
            code = _run(request.encode(), answer.fileno())
            answer.seek(0)
            content = answer.read(ANSWER_BYTES + 1)
    except OSError as error:
        raise Unavailable(f"Templates cannot be rendered now: {error.strerror}.") from None
    return _read(code, content)


def _read(code: int, content: bytes) -> Any:
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        raise Invalid(f"The template takes longer than {CPU_S} seconds to render.")
    if code < 0 or code == OUT_OF_MEMORY:
        raise Invalid("The template cannot be rendered: it takes too much memory.")
    try:
        found = json.loads(content)
    except ValueError:
        raise Unavailable("Templates cannot be rendered now: the renderer failed.") from None
    if not _encodable(found.get("text", "")):
        raise Invalid("The template gives half of a surrogate pair, which is not text.")
    return found


def _open_answer() -> BinaryIO:
    """Where the answer is written: in memory, if the system can, as a disk may be full."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("rendered"), "w+b")
    return cast("BinaryIO", tempfile.TemporaryFile())


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _run(request: bytes, answer: int) -> int:
    """Start the renderer, wait for it, and say how it ended."""
    # Where the interpreter itself is found by it, it must stay.
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    process = subprocess.Popen(  # noqa: S603  our own program
        [sys.executable, "-I", "-B", "-X", "utf8", str(_RENDERER)],
        stdin=subprocess.PIPE,
        stdout=answer,
        stderr=subprocess.DEVNULL,
        env=kept,
        cwd="/",
    )
    with process:
        try:
            process.communicate(request, timeout=WALL_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise Unavailable("The template could not be rendered in time; try again.") from None
    return process.returncode


def _refusal(template: Template, answer: Any) -> Invalid:
    line = template.line(answer["line"]) if answer["line"] else 0
    place = f"line {line}: " if line else ""
    name = answer.get("undefined")
    if name is None:
        return Invalid(f"The template cannot be rendered: {place}{answer['error']}.")
    return Invalid(
        f"The template cannot be rendered: {place}the variable {name!r} is not set.",
        hint=f"set it with --set {name}=VALUE, or in the template's default-values",
    )
