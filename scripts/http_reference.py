"""The table of routes in docs/reference/http.md, from the routes themselves.

    python scripts/http_reference.py           print the page as it must be
    python scripts/http_reference.py --write   rewrite it

Must not know any route.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from bough.control.scheduling.loop import Bell
from bough.control.site import Site
from bough.server.application import make_application, routes
from bough.server.authenticator import Authenticator
from bough.server.engine import Engine
from bough.server.permissions import Scope
from bough.store import Store

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "http.md"
OPENING = "<!-- routes -->"
CLOSING = "<!-- end of routes -->"
_ABOUT = {Scope.NOTHING: "", Scope.POOL: " on the pool", Scope.WORKFLOW: " on its pool"}


def main() -> None:
    """Print or rewrite the page."""
    text = page(PAGE.read_text(encoding="utf-8"))
    if "--write" in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


def page(text: str) -> str:
    """The page with its table put right."""
    before, _, rest = text.partition(OPENING)
    after = rest.partition(CLOSING)[2]
    return before + OPENING + "\n" + "\n".join(_table()) + "\n" + CLOSING + after


def _table() -> list[str]:
    lines = ["", "| route | does | needs |", "|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Store.open(Path(folder) / "nothing.db"))
        application = make_application(Authenticator(site), Engine(site, (), Bell()))
        described: dict[str, Any] = application.openapi_schema.to_schema()["paths"]  # pyright: ignore[reportAssignmentType]
        site.store.close()
    for method, path, permit in sorted(routes(application), key=lambda each: (each[1], each[0])):
        if method == "OPTIONS" or permit is None:
            continue
        operation = described.get(path, {}).get(method.lower(), {})
        summary = operation.get("summary", "The whole interface, described for programs.")
        about = _ABOUT.get(permit.scope, " on each pool that it names")
        lines.append(f"| `{method} {path}` | {summary} | `{permit.action}`{about} |")
    return [*lines, ""]


if __name__ == "__main__":
    main()
