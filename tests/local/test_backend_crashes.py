"""The server is killed at any moment: nothing is lost or run twice, no GPU is given twice."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from bough.backends.local.attempt_folder import Folders
from bough.backends.local.attempt_state import Acceptance, create_state, read_state
from bough.backends.local.backend import LocalBackend
from bough.model.backend import Sight
from tests.local.bench import Bench, now_ms, until
from tests.local.crashing import GANG, drive, options

_ROOT = Path(__file__).parents[2]
_KILLS = 8
_GANGS = 24


def test_a_server_that_is_killed_again_and_again_loses_nothing(tmp_path: Path) -> None:
    chance = random.Random(0)
    folder, marks = tmp_path / "local", tmp_path / "marks"
    marks.mkdir()
    command = [sys.executable, "-m", "tests.local.crashing", str(folder), str(marks), str(_GANGS)]
    killed = 0
    for number in range(_KILLS):
        server = subprocess.Popen(command, cwd=_ROOT)
        before = _count(marks)
        if number % 3:
            # Somewhere between its first start and some later ones; else anywhere from the first.
            until(lambda server=server, before=before: _count(marks) > before or server.poll() == 0)
        time.sleep(chance.random() * 0.1)
        server.kill()
        killed += server.wait() == -signal.SIGKILL
    assert killed > _KILLS // 2
    bell = threading.Event()
    backend = LocalBackend(options(folder), now_ms, bell.set)
    drive(backend, bell, marks, _GANGS)
    seen = backend.observe()
    texts = [backend.read_log(each.attempt) for each in seen]
    backend.close()
    assert _GANGS * GANG == len(seen)
    assert {(Sight.ENDED, 0)} == {(each.sight, each.exit_code) for each in seen}
    ran = [path.read_text().splitlines() for path in marks.glob("ran-*")]
    assert [1] * (_GANGS * GANG) == [len(lines) for lines in ran]
    assert all(part is not None and part.complete and len(part.lines) == 1 for part in texts)


def test_a_start_that_was_cut_off_before_it_was_taken_on_is_as_if_it_never_was(
    bench: Bench,
) -> None:
    launch = bench.shell("echo ran >> $MARK", environment={"MARK": str(bench.mark("ran"))}, gpus=8)
    name = launch.attempt.replace("/", "-")
    bench.backend.close()
    folders = Folders(bench.options.folder)
    folders.of(name).path.mkdir()
    (folders.open / name).touch()
    folders.of(name).launch.write_text("{")
    bench.backend = bench.open()
    assert () == bench.backend.observe()
    bench.start(launch)
    assert 0 == bench.wait_over(launch.attempt).exit_code
    assert "ran\n" == bench.mark("ran").read_text()


def test_a_start_that_was_cut_off_before_its_supervisor_is_done_when_it_is_told_again(
    bench: Bench,
) -> None:
    script = "echo $CUDA_VISIBLE_DEVICES >> $MARK"
    launch = bench.shell(script, environment={"MARK": str(bench.mark("ran"))}, gpus=2)
    bench.start(launch)
    bench.wait_over(launch.attempt)
    name = launch.attempt.replace("/", "-")
    bench.backend.close()
    # As if the server had been killed before it could ask for a supervisor.
    state = Folders(bench.options.folder).of(name).state
    old = read_state(state)
    assert old is not None
    state.unlink()
    accepted = Acceptance(launch.attempt, bench.node, 1, old.accepted.boot, (3, 5))
    create_state(state, accepted)
    bench.backend = bench.open()
    seen = bench.see(launch.attempt)
    assert seen is not None
    assert Sight.STARTING is seen.sight
    # Its GPUs are its own already.
    other = bench.run_shell("echo $CUDA_VISIBLE_DEVICES", gpus=4)
    bench.wait_over(other)
    assert ["0,1,2,4"] == bench.texts(other)
    bench.start(launch)
    assert 0 == bench.wait_over(launch.attempt).exit_code
    assert "0,1\n3,5\n" == bench.mark("ran").read_text()


def test_two_supervisors_for_the_same_attempt_run_it_once(bench: Bench) -> None:
    launches = [
        bench.shell("echo ran >> $MARK", environment={"MARK": str(bench.mark(f"ran-{number}"))})
        for number in range(10)
    ]
    names = [each.attempt.replace("/", "-") for each in launches]
    bench.start(*launches)
    for _ in range(5):
        bench.backend._fork_server.supervise(names, bench.backend._order_lease)
        bench.backend._fork_server.supervise(names[::2], bench.backend._order_lease)
    for each in launches:
        assert 0 == bench.wait_over(each.attempt).exit_code
    assert ["ran\n"] * 10 == [path.read_text() for path in bench.marks.glob("ran-*")]


def _count(marks: Path) -> int:
    return sum(1 for _ in marks.glob("ran-*"))
