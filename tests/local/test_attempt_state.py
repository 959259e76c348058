"""What is written about an attempt, and how processes are told from each other."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bough.backends.local import attempt_state as state_module
from bough.backends.local.attempt_state import (
    MESSAGE_CHARACTERS,
    PAGE,
    Acceptance,
    AttemptEnd,
    AttemptLock,
    AttemptState,
    Begun,
    StopRequest,
    SupervisorProcess,
    create_state,
    look,
    read_state,
    write_state,
)
from bough.backends.local.supervisor.processes import (
    children,
    descendants,
    find_process,
    left_of,
    send_signal,
)
from bough.backends.logs.log_writer import find_segments
from tests.local.bench import until

ACCEPTED = Acceptance("a/0", "node", 1, "boot", (2, 3))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "state"
    create_state(path, ACCEPTED)
    return path


def test_everything_that_is_written_is_read(path: Path) -> None:
    assert AttemptState(ACCEPTED) == read_state(path)
    told, kept, begun = StopRequest("cancel", 5, 6), SupervisorProcess(7, 8), Begun(9, 10, 11)
    over = AttemptEnd("ended", 12, 137, 9, "é", 4)
    hold = AttemptLock(path)
    for each in (kept, begun, over):
        hold.write(each, durably=True)
    hold.close()
    write_state(path, told)
    assert AttemptState(ACCEPTED, told, kept, begun, over) == read_state(path)


def test_what_is_written_durably_is_on_the_disk(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    hold = AttemptLock(path)
    hold.write(SupervisorProcess(7, 70))
    assert [] == synced
    hold.write(Begun(8, 80), durably=True)
    hold.close()

    assert [str(path)] == synced


def test_there_is_no_state_before_it_is_made(tmp_path: Path) -> None:
    assert read_state(tmp_path / "state") is None
    assert (None, False) == look(tmp_path / "state")
    (tmp_path / "state").write_bytes(b"")
    assert read_state(tmp_path / "state") is None


def test_a_page_that_was_half_written_counts_as_empty(path: Path) -> None:
    whole = path.read_bytes()
    write_state(path, AttemptEnd("ended", 12, 0, None, "x" * 100))
    content = path.read_bytes()
    start = 4 * PAGE
    for cut in range(start + 1, start + 140):
        path.write_bytes(content[:cut] + whole[cut:])
        assert AttemptState(ACCEPTED) == read_state(path)


def test_no_message_is_too_long_for_its_page(path: Path) -> None:
    write_state(path, AttemptEnd("unstartable", 1, message="😀" * 100_000))
    state = read_state(path)
    assert state is not None
    assert state.end is not None
    assert "😀" * MESSAGE_CHARACTERS + "…" == state.end.message


def test_the_room_for_all_pages_is_there_from_the_beginning(path: Path) -> None:
    found = path.stat()
    assert (5 * PAGE, 0o600) == (found.st_size, found.st_mode & 0o777)
    assert found.st_blocks * 512 >= found.st_size


def test_one_at_a_time_holds_an_attempt(path: Path) -> None:
    first, second = AttemptLock(path), AttemptLock(path)
    assert first.take()
    assert first.take()
    assert not second.take()
    assert look(path)[1]
    first.close()
    assert not look(path)[1]
    assert second.take()
    second.close()


def test_a_supervisor_that_comes_during_a_look_is_seen(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what it has just begun would count as left behind."""
    hold = AttemptLock(path)
    held = state_module._held

    def come(descriptor: int) -> bool:
        before = held(descriptor)
        if hold.take():
            hold.write(SupervisorProcess(1, 2))
            hold.write(Begun(3, 4))
        return before

    monkeypatch.setattr(state_module, "_held", come)
    state, is_held = look(path)
    assert state is not None
    assert (True, Begun(3, 4)) == (is_held, state.begun)
    hold.close()
    assert not look(path)[1]


def test_looking_does_not_take_what_is_looked_at(path: Path) -> None:
    for _ in range(3):
        assert not look(path)[1]
    hold = AttemptLock(path)
    assert hold.take()
    hold.close()


def test_what_holds_an_attempt_is_gone_with_its_process(path: Path) -> None:
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from bough.backends.local.attempt_state import AttemptLock\n"
        "hold = AttemptLock(Path(sys.argv[1]))\n"
        "print(hold.take(), flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert b"True\n" == process.stdout.readline()
        assert look(path)[1]
        process.kill()
    assert not look(path)[1]


def test_a_process_with_a_strange_name_is_found(tmp_path: Path) -> None:
    program = tmp_path / ") R (1 2"
    shutil.copy("/bin/sleep", program)
    with subprocess.Popen([str(program), "1000"]) as process:
        found = until(lambda: find_process(process.pid))
        assert (process.pid, os.getpid(), False) == (found.pid, found.parent, found.dead)
        assert process.pid in children(os.getpid())
        assert process.pid in [each.pid for each in descendants(os.getpid())]
        process.kill()
    assert find_process(process.pid) is None


def test_a_signal_reaches_only_the_process_that_is_meant() -> None:
    with subprocess.Popen(["/bin/sleep", "1000"]) as process:
        found = find_process(process.pid)
        assert found is not None
        assert not send_signal(process.pid, found.since + 1, 9)
        assert process.poll() is None
        assert send_signal(process.pid, found.since, 9)
        assert -9 == process.wait()
        assert not send_signal(process.pid, found.since, 9)


def test_a_process_of_another_user_cannot_be_signalled_and_that_is_no_error() -> None:
    first = find_process(1)
    assert first is not None
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setresuid(65_534, 65_534, 65_534)
            os._exit(send_signal(1, first.since, 0))
        finally:
            os._exit(2)
    assert (child, 0) == os.waitpid(child, 0)


def test_what_is_left_is_told_by_its_environment() -> None:
    environment = {"BOUGH_ATTEMPT": "strange/0"}
    with (
        subprocess.Popen(["/bin/sleep", "1000"], env=environment) as ours,
        subprocess.Popen(["/bin/sleep", "1000"], env={"BOUGH_ATTEMPT": "strange/01"}) as other,
    ):
        until(lambda: [each.pid for each in left_of("strange/0", 0, 0)] == [ours.pid])
        since = find_process(other.pid)
        assert since is not None
        found = {each.pid for each in left_of("strange/0", other.pid, since.since)}
        assert {ours.pid, other.pid} == found
        assert {ours.pid} == {each.pid for each in left_of("strange/0", other.pid, 1)}
        ours.kill()
        other.kill()


def test_files_that_are_no_segments_are_not_taken_for_some(tmp_path: Path) -> None:
    for name in ("log.0000000000000000", "log.12", "log.x", "log.", "state", "log.1.part"):
        (tmp_path / name).touch()
    assert [0, 12] == find_segments(tmp_path)
    assert [] == find_segments(tmp_path / "missing")
