"""The environment and the arguments of a task.

They contain nothing of the server's own environment, and nothing that the kernel would refuse.
"""

from __future__ import annotations

import re

from bough.backends.local.data.paths import shown
from bough.backends.local.errors import Unstartable
from bough.backends.local.options import SEARCH_PATH, LocalOptions
from bough.backends.local.preparation.layout import TaskLayout
from bough.model.backend import Launch

_REFERENCE = re.compile(r"\$(\$?)\(([^)]+)\)")
#: Limits of the kernel for one text, and for all together with some room to spare.
LONGEST_TEXT, LONGEST_TEXTS = 128 * 1024 - 1, 1024 * 1024


def usual_environment(options: LocalOptions, launch: Launch, layout: TaskLayout) -> dict[str, str]:
    """The variables of every task, which its spec can override."""
    user = launch.user if options.as_user else options.task_user or "bough"
    return {
        "HOME": layout.seen_work(),
        "LANG": "C.UTF-8",
        "LOGNAME": user,
        "PATH": SEARCH_PATH,
        "PWD": layout.seen_work(),
        "TMPDIR": layout.seen_temporary(),
        "USER": user,
    }


def identify(
    launch: Launch, layout: TaskLayout, workflow_id: str, gpus: tuple[int, ...]
) -> dict[str, str]:
    """The variables that identify a task and its GPUs, which its spec cannot override."""
    return {
        "BOUGH_ATTEMPT": launch.attempt,
        "BOUGH_OUTPUT": layout.seen_output(),
        "BOUGH_RETRY_ID": str(launch.retry_id),
        "BOUGH_TASK": launch.name,
        "BOUGH_WORKFLOW_ID": workflow_id,
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(str(each) for each in gpus),
    }


def expand(text: str, variables: dict[str, str]) -> str:
    """A word of a command with every `$(NAME)` replaced, as Kubernetes does it.

    `$$(NAME)` is `$(NAME)`; what names no variable is left as it is. Elsewhere `$$` stays, which
    Kubernetes makes one `$`: in a shell it is the number of the process.
    """

    def value(found: re.Match[str]) -> str:
        return found[0][1:] if found[1] else variables.get(found[2], found[0])

    return _REFERENCE.sub(value, text)


def check_variables(variables: dict[str, str]) -> None:
    """Refuse variables that no process can have."""
    together = 0
    for name, value in variables.items():
        if not name or "=" in name or not name.isprintable():
            raise Unstartable(
                f"environment: {shown(name)} cannot be the name of a variable; it must not be "
                'empty, nor contain "=" or characters that cannot be shown'
            )
        if not _is_text(value):
            raise Unstartable(f"environment: the value of {shown(name)} is not valid text")
        size = _size(name) + _size(value) + 1
        together += size + 1
        if size > LONGEST_TEXT:
            raise Unstartable(
                f"environment: {shown(name)} is longer than {LONGEST_TEXT} bytes; write it to a "
                "file (files:) instead"
            )
    _check_sum("environment", together)


def check_arguments(argv: tuple[str, ...]) -> None:
    """Refuse arguments that no process can have."""
    together = 0
    for number, text in enumerate(argv):
        if not _is_text(text):
            raise Unstartable(f"command and args: number {number + 1} is not valid text")
        size = _size(text)
        together += size + 1
        if size > LONGEST_TEXT:
            raise Unstartable(
                f"command and args: number {number + 1} is longer than {LONGEST_TEXT} bytes; "
                "write it to a file (files:) instead"
            )
    if not argv[0]:
        raise Unstartable("command and args: the first one, the program to run, is empty")
    _check_sum("command and args", together)


def _check_sum(what: str, together: int) -> None:
    if together > LONGEST_TEXTS:
        raise Unstartable(
            f"{what}: together they are longer than {LONGEST_TEXTS} bytes; write them to a file "
            "(files:) instead"
        )


def _is_text(text: str) -> bool:
    """Whether a process can have it: no zero bytes, no lone surrogates."""
    try:
        return "\0" not in text and bool(text.encode() or True)
    except UnicodeEncodeError:
        return False


def _size(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))
