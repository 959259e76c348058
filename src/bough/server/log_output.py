"""How the processes of a server log."""

from __future__ import annotations

import logging
import sys


def log_to_standard_error(process: str = "") -> None:
    """Log to standard error, with times, without messages of libraries.

    process:  named in each line, where several do the same.
    """
    handler = logging.StreamHandler(sys.stderr)
    named = f" [{process}]" if process else ""
    handler.setFormatter(
        logging.Formatter(f"%(asctime)s %(levelname)s %(name)s{named} %(message)s")
    )
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for name in ("uvicorn.error", "uvicorn"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)
