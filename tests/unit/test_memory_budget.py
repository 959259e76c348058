"""The memory budget that `bough serve --help` prints: its figures are those that are enforced."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner

from bough.cli.main import program
from bough.control.workflows import logs, rendering
from bough.errors import Busy, Throttled
from bough.server import answer_cache, concurrency_limits, settings
from bough.server.concurrency_limits import BodyCount
from bough.server.connections import Bounds, OpenConnections
from bough.server.memory_budget import rows, shares

MIB = 1 << 20


def printed() -> str:
    """The help, with every run of spaces as one."""
    # By the whole program: a command keeps the help option of the first one that it is asked by.
    return " ".join(CliRunner().invoke(program, ["serve", "--help"]).output.split())


def test_the_help_ends_with_the_budget():
    text = printed()
    for part, what in rows():
        assert f"{part} {what}" in text
    assert "total 1,728 MiB." in text


@pytest.mark.parametrize(
    ("module", "name", "part", "factor"),
    [
        (concurrency_limits, "ALL_BODIES_BYTES", "bodies", 1),
        (answer_cache, "ALL_BYTES", "lists", 1),
        (logs, "ALL_KEPT", "logs", 1),
        (rendering, "MEMORY_BYTES", "templates", rendering.AT_ONCE),
        (rendering, "ANSWER_BYTES", "templates", rendering.AT_ONCE),
    ],
)
def test_a_bound_that_is_changed_is_printed_as_it_is_then(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str, part: str, factor: int
):
    before = {each.part: each.size for each in shares()}
    monkeypatch.setattr(module, name, getattr(module, name) + 7 * MIB)
    more = 7 * MIB * factor
    expected = {**before, part: before[part] + more}
    assert expected == {each.part: each.size for each in shares()}
    assert f"total {sum(expected.values()) // MIB:,} MiB." in printed()


def test_what_stands_in_the_sentences_are_the_bounds_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(settings, "MAXIMUM_BODY_BYTES", 5 * MIB)
    monkeypatch.setattr(concurrency_limits, "BODIES_BYTES", 41 * MIB)
    monkeypatch.setattr(logs, "MOST_KEPT", 3 * MIB)
    text = printed()
    assert "5 MiB for one request, 41 MiB for one user" in text
    assert "3 MiB for one stream" in text


def test_what_clients_do_not_take_is_bounded_as_is_printed():
    found = {each.part: each.size for each in shares()}
    assert OpenConnections(Bounds()).bounds.untaken_bytes == found["answers"]


def test_the_bodies_of_all_users_together_are_bounded_as_is_printed():
    each = concurrency_limits.BODIES_BYTES
    users = [f"user-{number}" for number in range(concurrency_limits.ALL_BODIES_BYTES // each)]

    async def send() -> None:
        bodies = {user: BodyCount() for user in users}
        for user, body in bodies.items():
            body.add(user, each)
        more = BodyCount()
        with pytest.raises(Busy, match="All users together"):
            more.add("another", 1)
        with pytest.raises(Throttled, match="user-0 has sent 64 MiB"):
            more.add("user-0", 1)
        bodies["user-0"].close()
        more.add("another", each)

    anyio.run(send)


def test_the_page_about_the_server_has_the_same_figures():
    page = Path("docs/server.md").read_text()
    sizes = {each.part: f"{each.size // MIB:,} MiB" for each in shares()}
    sizes["total"] = f"{sum(each.size for each in shares()) // MIB:,} MiB"
    for part, size in sizes.items():
        assert f"| {part} | {size} |" in page
