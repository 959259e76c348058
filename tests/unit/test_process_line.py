"""What a server and its loop's process say to each other."""

from __future__ import annotations

import socket
import threading
from ipaddress import ip_network
from pathlib import Path

import pytest

from bough.control.clock import SteadyClock
from bough.control.pools.node_shares import QueueStanding
from bough.control.scheduling.plan_questions import GangAnswer, Question
from bough.errors import BoughError, Broken, Busy, Conflict, Invalid, NotLeading, Unavailable
from bough.model.quota import NodeKind, TreeNode
from bough.server.loop_messages import FROM_LOOP, TO_LOOP, Answered, Ask, Stand, Status
from bough.server.loop_view import Counts
from bough.server.process_channel import Failed, Line, read_settings, write_settings
from bough.server.settings import Settings


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Line(ours), Line(theirs)


@pytest.mark.parametrize(
    "settings",
    [
        Settings(Path("data")),
        Settings(
            Path("/srv/bough"),
            database="postgresql://user:secret@host/name",
            nodes=Path("nodes.yaml"),
            policy=Path("policy.yaml"),
            trusted_proxies=(ip_network("10.0.0.0/8"), ip_network("::1/128")),
            data_folders=(Path("/data"), Path("/scratch")),
            gpus=3,
            private=False,
            tasks=Path("/tasks"),
        ),
    ],
)
def test_settings_arrive_as_they_were(settings: Settings):
    assert settings == read_settings(write_settings(settings))


def test_questions_and_answers_arrive_as_they_were(ends: tuple[Line, Line]):
    ours, theirs = ends
    question = Question("ann", ("a/0",), ("b/0",), queues=True, pools=frozenset({"x", "y"}))
    ours.send(Ask(1, question))
    assert Ask(1, question) == theirs.read(TO_LOOP)
    answers = {"a/0": GangAnswer("quota", "It waits.")}
    standing = QueueStanding(TreeNode(NodeKind.QUEUE, "q"), "0.334", 4, 2.5)
    for message in (
        Answered(1, answers),
        Stand(2, (standing, QueueStanding(TreeNode(NodeKind.COHORT, "c"), "0"))),
        Status(leads=True, counts=Counts(cycles=3, seconds=0.5)),
    ):
        theirs.send(message)
        assert message == ours.read(FROM_LOOP)


def test_a_message_that_is_larger_than_the_line_arrives_whole(ends: tuple[Line, Line]):
    ours, theirs = ends
    large = Answered(1, {str(number): GangAnswer("x" * 1_000, "y") for number in range(5_000)})
    thread = threading.Thread(target=theirs.send, args=(large,))
    thread.start()
    assert large == ours.read(FROM_LOOP)
    thread.join()


def test_an_end_that_is_gone_is_noticed(ends: tuple[Line, Line]):
    ours, theirs = ends
    theirs.socket.close()
    with pytest.raises(EOFError):
        ours.read(FROM_LOOP)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Invalid("no", hint="yes", details=("a", "b")), Invalid),
        (Conflict("no"), Conflict),
        (Busy("no"), Busy),
        (Unavailable("no"), Unavailable),
        (NotLeading("no"), Unavailable),
        (Broken("no"), Broken),
    ],
)
def test_an_error_is_raised_at_the_other_end_as_what_it_was(
    error: BoughError, kind: type[BoughError]
):
    found = Failed.of(7, error).error()
    assert (kind, error.message, error.hint, error.details) == (
        type(found),
        found.message,
        found.hint,
        found.details,
    )


def test_what_was_counted_goes_on_after_another_process():
    before = Counts(cycles=5, seconds=1.0, last_seconds=0.7, started=4)
    found = Counts(cycles=2, seconds=0.5, last_seconds=0.1, started=1, void=1).after(before)
    assert Counts(cycles=7, seconds=1.5, last_seconds=0.1, started=5, void=1) == found


def test_the_clock_of_the_loop_goes_on_from_that_of_its_server():
    there = SteadyClock()
    # As after the machine's clock was set by an hour.
    there._now_ms -= 3_600_000
    now_ms, since_boot_ms = there.moment()
    here = SteadyClock.beginning(since_boot_ms, now_ms)
    first, between, last = there.now_ms(), here.now_ms(), there.now_ms()
    assert first - 1 <= between <= last + 1
