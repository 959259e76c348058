"""`osmo usage` as people and programs see it."""

from __future__ import annotations

import json
from typing import Any

from tests.answering import Answering
from tests.unit.conftest import Osmo


def row(name: str, *hours: float) -> dict[str, Any]:
    keys = ("gpu_hours", "guaranteed", "preemptible", "borrowed")
    return {"name": name, **dict(zip(keys, hours, strict=True))}


ANSWER = {
    "since": "2026-01-05T10:00:00.000",
    "until": "2026-01-12T10:00:00.000",
    "by": "pool",
    "rows": [row("team", 180.0, 0.0, 180.0, 160.0), row("team--a", 8.126, 8.126, 0.0, 0.0)],
    "total": row("total", 188.126, 8.126, 180.0, 160.0),
}
TABLE = """\
From Jan 05, 2026 10:00 UTC to Jan 12, 2026 10:00 UTC.

Pool      GPU-Hours   Guaranteed   Preemptible   Borrowed
=========================================================
team      180.00      0.00         180.00        160.00
team--a   8.13        8.13         0.00          0.00
=========================================================
          188.13      8.13         180.00        160.00
"""
CSV = """\
pool,gpu_hours,guaranteed,preemptible,borrowed
team,180.0000,0.0000,180.0000,160.0000
team--a,8.1260,8.1260,0.0000,0.0000
"""


def test_usage_is_a_table_with_sums(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/usage", ANSWER)

    assert (0, TABLE, "") == osmo("usage")
    assert {"since": ["7d"], "by": ["pool"]} == server.last.query


def test_usage_is_csv_and_json_for_programs(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/usage", ANSWER)

    assert (0, CSV, "") == osmo("usage", "--format-type", "csv")
    assert ANSWER == json.loads(osmo("usage", "-t", "json").output)


def test_usage_is_asked_for_as_people_say_it(osmo: Osmo, server: Answering):
    nothing = {**ANSWER, "by": "user", "rows": [], "total": row("total", 0, 0, 0, 0)}
    server.answer("GET", "/api/usage", nothing)

    ended = osmo("usage", "--since", "2026-01-05", "--until", "1h", "--by", "user")

    expected = "From Jan 05, 2026 10:00 UTC to Jan 12, 2026 10:00 UTC. Nothing was used.\n"
    assert (0, expected, "") == ended
    assert {"since": ["2026-01-05"], "until": ["1h"], "by": ["user"]} == server.last.query
    assert "user,gpu_hours,guaranteed,preemptible,borrowed\n" == osmo("usage", "-t", "csv").output
