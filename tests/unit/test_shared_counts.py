"""Counts that processes share: limits hold exactly, and what a dead process had is taken back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.errors import Throttled
from bough.server import concurrency_limits
from bough.server.bounded_counts import OwnTally, Want
from bough.server.concurrency_limits import BodyCount, share_limits
from bough.server.workers.shared_counts import SharedTally, make_memory

WORKERS = 3
#: Takes what only one can have, again and again, and says how often it was not alone with it; then
#: takes as many as it can of one key, says how many it has, and stays.
GREEDY = """
import sys
from bough.server.bounded_counts import Want
from bough.server.workers.shared_counts import SharedTally
memory, worker = map(int, sys.argv[1:])
tally = SharedTally(memory, 3, worker)
print("ready", flush=True)
sys.stdin.readline()
wrong = 0
for _ in range(5000):
    if tally.take(Want("one", 1, 1)) is None:
        wrong += tally.count("one") != 1
        tally.give_back("one", 1)
print(wrong, flush=True)
count = 0
while tally.take(Want("of all", 1, 1000), Want(f"of {worker}", 1, None)) is None:
    count += 1
print(count, flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def memory() -> Iterator[int]:
    found = make_memory(WORKERS, 32)
    yield found
    os.close(found)


def test_processes_that_count_at_once_exceed_no_limit_and_leave_nothing_of_it(memory: int):
    processes = [_greedy(memory, each) for each in range(WORKERS)]
    tally = SharedTally(memory, WORKERS)
    try:
        assert ["ready\n"] * WORKERS == [_read(each) for each in processes]
        for each in processes:
            _go_on(each)
        assert ["0\n"] * WORKERS == [_read(each) for each in processes]
        counts = [int(_read(each)) for each in processes]
        assert 1_000 == sum(counts) == tally.count("of all")
        assert counts == tally.of_each("of all")
    finally:
        for each in processes:
            each.kill()
            each.communicate()
    for each in range(WORKERS):
        tally.clear(each)
    assert [0] * WORKERS == tally.of_each("of all")


def test_a_lock_of_a_process_that_is_killed_is_free(memory: int):
    holds = f"import fcntl; fcntl.lockf({memory}, fcntl.LOCK_EX); print(1, flush=True); input()"
    process = subprocess.Popen(
        [sys.executable, "-c", holds],
        pass_fds=(memory,),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert SharedTally(memory, WORKERS).take(Want("a", 1, 1)) is None


@given(
    st.lists(
        st.tuples(
            st.integers(0, WORKERS - 1),
            st.integers(0, 60),
            st.integers(1, 4),
            st.booleans(),
        ),
        max_size=300,
    )
)
def test_shared_counts_are_those_of_one_process(steps: list[tuple[int, int, int, bool]]):
    # So few rows that keys are seldom in their own place.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bough.server.workers.shared_counts._BESIDE", 64)
        memory = make_memory(WORKERS, 0)
    try:
        shared = [SharedTally(memory, WORKERS, each) for each in range(WORKERS)]
        alone = OwnTally()
        held: Counter[tuple[int, str]] = Counter()
        for worker, number, amount, takes in steps:
            key = f"key {number}"
            if takes:
                wants = (Want(key, amount, 6), Want("all", amount, 40))
                refused = alone.take(*wants)
                assert refused == shared[worker].take(*wants)
                if refused is None:
                    held[worker, key] += amount
            elif held[worker, key]:
                had = held.pop((worker, key))
                for each in (key, "all"):
                    alone.give_back(each, had)
                    shared[worker].give_back(each, had)
            assert alone.count(key) == shared[0].count(key)
        assert alone.count("all") == shared[0].count("all")
    finally:
        os.close(memory)


def test_rows_are_used_again_so_new_keys_always_find_one(memory: int):
    tally = SharedTally(memory, WORKERS)
    for number in range(40_000):
        assert tally.take(Want(f"address {number}", 1, None)) is None
        tally.give_back(f"address {number}", 1)
    assert 0 == tally.count("address 7")


def test_what_cannot_be_counted_is_not_allowed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("bough.server.workers.shared_counts._BESIDE", 4)
    memory = make_memory(1, 0)
    try:
        tally = SharedTally(memory, 1)
        assert [None] * 4 == [tally.take(Want(str(each), 1, None)) for each in range(4)]
        more = Want("more", 1, None)
        assert more == tally.take(more)
        tally.give_back("0", 1)
        assert tally.take(more) is None
    finally:
        os.close(memory)


def test_bodies_of_one_user_are_bounded_for_all_workers_together(
    memory: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(concurrency_limits, "_Together", type("_Together", (), {}))
    other = SharedTally(memory, 2, 1)
    share_limits(2, SharedTally(memory, 2, 0))
    most = concurrency_limits.BODIES_BYTES

    async def send() -> None:
        # Another worker has all but one byte.
        assert other.take(Want("bodies of ann", most - 1, most)) is None
        body = BodyCount()
        body.add("ann", 1)
        with pytest.raises(Throttled, match="ann has sent 64 MiB"):
            body.add("ann", 1)
        body.close()
        assert most - 1 == other.count("bodies of ann")

    anyio.run(send)


def _greedy(memory: int, worker: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", GREEDY, str(memory), str(worker)],
        pass_fds=(memory,),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _read(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def _go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()
