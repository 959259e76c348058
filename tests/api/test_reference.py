"""The pages about the interface say what is so."""

from __future__ import annotations

import re
from pathlib import Path

from bough import errors
from scripts.http_reference import PAGE, page

CODES = Path(__file__).parents[2] / "docs" / "reference" / "error-codes.md"


def test_the_reference_has_every_route_with_what_it_needs():
    text = PAGE.read_text(encoding="utf-8")

    assert page(text) == text, "run python scripts/http_reference.py --write"


def test_every_error_has_its_code_in_the_reference():
    kinds = [errors.BoughError, *_below(errors.BoughError)]
    wanted = {(kind.http_status, kind.code) for kind in kinds if kind is not errors.BoughError}

    listed = re.findall(
        r"^\| (\d{3}) \| `(\w+)` \|", CODES.read_text(encoding="utf-8"), re.MULTILINE
    )

    assert set() == wanted - {(int(status), code) for status, code in listed}


def _below(kind):
    for child in kind.__subclasses__():
        if child.__module__ == "bough.errors":
            yield child
            yield from _below(child)
