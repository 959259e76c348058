"""How the processes of a server log."""

from __future__ import annotations

import logging
import sys


def log_to_standard_error() -> None:
    """Log to standard error, with times, without messages of libraries."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for name in ("uvicorn.error", "uvicorn"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)
