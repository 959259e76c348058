"""A process that the server starts: imports what it runs, runs it, and ends.

`python -m` this module runs `main` of another one, which returns the exit code.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
from importlib import import_module
from typing import NoReturn


def run(module: str, numbers: list[str]) -> NoReturn:
    """Be the process of a module, with the numbers that its `main` takes."""
    # What is imported stays. To look through it again and again for what could be freed costs a
    # sixth of the start, and something in every full collection later.
    gc.disable()
    found = import_module(module)
    gc.freeze()
    gc.enable()
    code: int = found.main(*map(int, numbers))
    logging.shutdown()
    # At once, without waiting for unanswered questions.
    os._exit(code)


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2:])
