"""The tables of routes and types in docs/reference/http.md, from the routes themselves.

python scripts/http_reference.py           print the page as it must be
python scripts/http_reference.py --write   rewrite it
"""

from __future__ import annotations

import sys
import tempfile
from importlib import import_module
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin

import msgspec
from litestar.response import Stream

from bough.control.scheduling.loop import Bell
from bough.control.site import Site
from bough.server.application import DECLARED, make_application, routes
from bough.server.authenticator import Authenticator
from bough.server.permissions import Scope
from bough.server.scheduler_thread import Engine
from bough.store import Store

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "http.md"
OPENING = "<!-- routes -->"
CLOSING = "<!-- end of routes -->"
TYPES_OPENING = "<!-- types -->"
TYPES_CLOSING = "<!-- end of types -->"
#: The modules of `bough.api`, as its map has them.
_SUBJECTS = ("common", "pools", "workflows", "why", "nodes", "people", "configs", "system")
_ABOUT = {
    Scope.NOTHING: "",
    Scope.POOL: " on the pool",
    Scope.WORKFLOW: " on its pool",
    Scope.OWN_WORKFLOW: " on its pool; only your own workflows, unless you are admin of the pool",
}


def main() -> None:
    """Print or rewrite the page."""
    text = page(PAGE.read_text(encoding="utf-8"))
    if "--write" in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


def page(text: str) -> str:
    """The page with its tables put right."""
    text = _replaced(text, OPENING, CLOSING, _table())
    return _replaced(text, TYPES_OPENING, TYPES_CLOSING, _types())


def _replaced(text: str, opening: str, closing: str, lines: list[str]) -> str:
    before, _, rest = text.partition(opening)
    after = rest.partition(closing)[2]
    return before + opening + "\n" + "\n".join(lines) + "\n" + closing + after


def _types() -> list[str]:
    """A line for each type of the wire: what it is, and its fields."""
    lines = ["", "| type | is | fields |", "|---|---|---|"]
    for subject in _SUBJECTS:
        module = import_module(f"bough.api.{subject}")
        for kind in vars(module).values():
            if isinstance(kind, type) and kind.__module__ == module.__name__:
                what = (kind.__doc__ or "").partition("\n")[0]
                fields = ", ".join(f"`{each.encode_name}`" for each in msgspec.structs.fields(kind))
                lines.append(f"| `{kind.__name__}` | {what} | {fields} |")
    return [*lines, ""]


def _answers() -> dict[tuple[str, str], tuple[str, str]]:
    """What each route does, and the type of its answer, by method and path."""
    return {
        (each.method, each.path.replace(":str}", "}").replace(":int}", "}")): (
            (each.fn.__doc__ or "").partition("\n")[0],
            _type_name(each.answer),
        )
        for each in DECLARED
    }


def _type_name(kind: Any) -> str:
    if kind in (None, NoneType):
        return "`null`"
    if kind is Stream or kind is str:
        return "text"
    arguments = get_args(kind)
    if get_origin(kind) is list:
        return f"list of {_type_name(arguments[0])}"
    if get_origin(kind) is dict:
        return "object" if arguments[1] is Any else f"object of {_type_name(arguments[1])}"
    return f"`{kind.__name__}`"


def _table() -> list[str]:
    lines = ["", "| route | does | answers | needs |", "|---|---|---|---|"]
    answers = _answers()
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Store.open(Path(folder) / "nothing.db"))
        application = make_application(Authenticator(site), Engine(site, (), Bell()))
        site.store.close()
    for method, path, permit in sorted(routes(application), key=lambda each: (each[1], each[0])):
        if method == "OPTIONS" or permit is None:
            continue
        about = _ABOUT.get(permit.scope, " on each pool in the body")
        summary, answer = answers[method, path]
        lines.append(f"| `{method} {path}` | {summary} | {answer} | `{permit.action}`{about} |")
    return [*lines, ""]


if __name__ == "__main__":
    main()
