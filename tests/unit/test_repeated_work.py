"""Work that a server repeats in a thread: at once, again and again, and never after its stop."""

from __future__ import annotations

import threading

from bough.server.repeated_work import RepeatedWork


def test_work_is_done_at_once_and_again_until_it_is_stopped():
    done = threading.Semaphore(0)
    work = RepeatedWork("test", done.release, 0.001)

    work.start()
    assert all(done.acquire(timeout=60) for _ in range(3))
    work.stop()

    while done.acquire(blocking=False):
        pass
    assert not work._thread.is_alive()
    assert not done.acquire(timeout=0.05)


def test_a_long_pause_ends_with_the_stop():
    done = threading.Semaphore(0)
    work = RepeatedWork("test", done.release, 3_600)

    work.start()
    assert done.acquire(timeout=60)
    work.stop()

    assert not work._thread.is_alive()


def test_what_was_never_started_can_be_stopped():
    RepeatedWork("test", lambda: None, 1).stop()
