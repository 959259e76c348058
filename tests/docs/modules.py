"""Names of our modules in a page: paths like `core/cycle/plan.py`, and names like `store.rows`."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.commands import ROOT

SOURCE = ROOT / "src/bough"
_PACKAGES = "|".join(sorted(each.parent.name for each in SOURCE.glob("*/__init__.py")))
_PATH = re.compile(rf"(?<![\w/.-])(?:src/bough/)?((?:{_PACKAGES})(?:/[a-z_0-9]+)*(?:/|\.py))")
_DOTTED = re.compile(rf"(?<![\w/.-])((?:bough\.)?(?:{_PACKAGES})(?:\.\w+)+)(?![\w/(]|\.\w)")


def missing_modules(text: str) -> list[str]:
    """What a page names as a module, or as something in one, and is not there."""
    found = {each for each in _PATH.findall(text) if not (SOURCE / each).exists()}
    names = {each for each in _DOTTED.findall(text) if not each.endswith(".md")}
    found |= {each for each in names if not _is_there(each)}
    return sorted(found)


def _is_there(dotted: str) -> bool:
    """Whether it is a folder or a module, or something that one defines."""
    place: Path = SOURCE
    for name in dotted.removeprefix("bough.").split("."):
        if (place / name).is_dir():
            place = place / name
        elif (place / f"{name}.py").is_file():
            place = place / f"{name}.py"
        else:
            holder = place / "__init__.py" if place.is_dir() else place
            made = rf"^(?:class|def) {name}\b|^{name}\b|^from .* import .*\b{name}\b"
            return bool(re.search(made, holder.read_text(encoding="utf-8"), re.MULTILINE))
    return True
