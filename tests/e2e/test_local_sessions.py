"""Commands in tasks that run: what they see and have, how they end, and who may have them."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from bough import Client
from bough.errors import BoughError, Forbidden, Unauthenticated
from bough.server.sessions import PER_USER
from bough.websocket.channels import INPUT, OUTPUT, STATUS
from bough.websocket.peer import Peer
from tests.e2e.local import Hosting, Local, hosting
from tests.e2e.served import PATIENCE_S
from tests.e2e.sessions import Terminal, begin, marked, run, started, token_of

#: What a task and a session in it must have in common.
SEEN = """
for each in cgroup mnt pid ipc net user uts; do readlink /proc/self/ns/$each; done
id -u; id -g; id -G; pwd; umask; ulimit -n; cat /proc/self/oom_score_adj
grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status
sed 's,/session-[0-9]*,,' /proc/self/cgroup
env | grep -v -e ^_= -e ^SHLVL= | sort
"""


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosting]:
    with hosting(tmp_path_factory.mktemp("sessions"), 4) as found:
        found.start().pool("p", 4)
        yield found


@pytest.fixture(scope="module")
def host(hosted: Hosting) -> Local:
    return hosted.start()


@pytest.fixture(scope="module")
def name(host: Local) -> str:
    return begin(host)


def test_a_session_has_what_the_task_has_and_nothing_of_the_server(host: Local):
    fields = {"environment": {"OWN": "of the task"}, "credentials": {}}
    other = host.send(
        "p",
        "NORMAL",
        {"name": "same", "tasks": [_shell("main", f"{SEEN} echo end; exec sleep 1000", **fields)]},
    )
    host.until(lambda: "[main] end" in host.log(other))
    told = [line.removeprefix("[main] ") for line in host.log(other)]

    code, output, errors = run(host, "exec", other, "main", "--", "sh", "-c", SEEN)

    assert (0, b"") == (code, errors)
    assert told[: told.index("end")] == output.decode().splitlines()
    assert os.readlink("/proc/self/ns/mnt") not in output.decode()
    assert "OWN=of the task" in output.decode()
    assert "BOUGH_TOKEN" not in output.decode()
    host.client.workflows.cancel(other, force=True)


def test_exit_codes_streams_and_what_is_no_program(host: Local, name: str):
    script = "echo out; echo err >&2; test -t 0 || test -t 1 || echo no terminal; exit 7"

    assert (7, b"out\nno terminal\n", b"err\n") == run(
        host, "exec", name, "main", "--", "sh", "-c", script
    )
    assert 130 == run(host, "exec", name, "main", "--", "sh", "-c", "kill -INT $$")[0]
    code, _, errors = run(host, "exec", name, "main", "--", "nothing-of-that-name")
    assert (127, b"there is no command 'nothing-of-that-name'\n") == (code, errors)
    code, _, errors = run(host, "exec", name, "other", "--", "true")
    assert (125, True) == (code, b"has no task other" in errors)
    code, _, errors = run(host, "exec", "none-1", "main", "--", "true")
    assert (125, True) == (code, b"none-1" in errors)


def test_every_byte_comes_through_and_the_end_of_input_too(host: Local, name: str):
    data = bytes(range(256)) * 4096 + os.urandom(3_000_001)

    assert (0, data, b"") == run(host, "exec", "-i", name, "main", "--", "cat", given=data)
    counted = run(host, "exec", name, "main", "-i", "--", "wc", "-c", given=data)
    assert str(len(data)).encode() == counted[1].strip()
    # Without -i there is nothing to read.
    assert b"0" == run(host, "exec", name, "main", "--", "wc", "-c", given=data)[1].strip()


def test_a_terminal_has_the_size_of_the_window_and_what_is_typed_are_signals(
    host: Local, name: str
):
    mark = _mark()
    with Terminal(host, "exec", "-it", name, "main", "--", "sh", rows=40, columns=132) as terminal:
        terminal.type(b"tty; stty size; echo fin''ished\n")
        assert b"/dev/pts/" in terminal.until(b"40 132")
        terminal.until(b"finished")
        terminal.resize(50, 100)
        terminal.type(b"sleep 0.2; stty size; echo resi''zed\n")
        terminal.until(b"50 100")
        terminal.until(b"resized")
        # What is typed is no text for the command, but a signal. The shell gives the terminal to
        # a command before it is executed: a signal that comes earlier would be the shell's own.
        terminal.type(f"sleep {mark}\n".encode())
        host.until(lambda: 1 == len(marked(mark)), lambda: marked(mark))
        terminal.type(b"\x03")
        host.until(lambda: not marked(mark), lambda: marked(mark))
        terminal.type(b"echo code $?; exit 5\n")
        terminal.until(b"code 130")

        assert 5 == terminal.end()


def test_without_a_terminal_signals_are_passed_on(host: Local, name: str):
    script = "trap 'echo told; exit 9' TERM; echo set; while :; do sleep 0.05; done"
    with started(host, "exec", name, "main", "--", "sh", "-c", script) as process:
        assert b"set\n" == process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert b"told\n" == process.stdout.readline()
        assert 9 == process.wait(PATIENCE_S)


@pytest.mark.parametrize("terminal", [True, False])
def test_nothing_is_left_when_the_client_is_killed(host: Local, name: str, terminal: bool):
    mark = _mark()
    script = f"setsid sleep {mark} & (trap '' HUP TERM INT; sleep {mark}) & sleep {mark}"
    if terminal:
        with Terminal(host, "exec", "-it", name, "main", "--", "sh", "-c", script):
            host.until(lambda: 3 == len(marked(mark)), lambda: marked(mark))
    else:
        with started(host, "exec", name, "main", "--", "sh", "-c", script) as process:
            host.until(lambda: 3 == len(marked(mark)), lambda: marked(mark))
            process.kill()

    host.until(lambda: not marked(mark), lambda: marked(mark))
    assert "RUNNING" == host.status(name)
    assert 0 == run(host, "exec", name, "main", "--", "true")[0]


def test_nothing_is_left_when_the_process_of_a_session_is_killed(host: Local, name: str):
    mark = _mark()
    with started(
        host, "exec", name, "main", "--", "sh", "-c", f"sleep {mark} & sleep {mark}"
    ) as it:
        host.until(lambda: 2 == len(marked(mark)), lambda: marked(mark))
        os.kill(_session_of(marked(mark)[0]), signal.SIGKILL)
        assert 125 == it.wait(PATIENCE_S)

    host.until(lambda: not marked(mark), lambda: marked(mark))
    assert "RUNNING" == host.status(name)


def test_a_session_ends_with_its_task(host: Local):
    other, mark = begin(host, name="ends"), _mark()
    with started(host, "exec", other, "main", "--", "sleep", mark) as process:
        host.until(lambda: 1 == len(marked(mark)), lambda: marked(mark))
        host.client.workflows.cancel(other, force=True)
        # It is cut off, or the command is seen to be killed before that.
        assert process.wait(PATIENCE_S) in (125, 128 + signal.SIGKILL)

    host.until(lambda: not marked(mark), lambda: marked(mark))
    code, _, errors = run(host, "exec", other, "main", "--", "true")
    assert (125, True) == (code, b"only while it runs" in errors), errors


def test_a_hundred_at_once_and_not_one_more(host: Local, name: str):
    mark = _mark()
    begun = _open_at_once(host, name, ["cat"], PER_USER)
    code, _, errors = run(host, "exec", name, "main", "--", "true")
    assert (125, True) == (code, f"{PER_USER} sessions already".encode() in errors), errors

    for number, peer in enumerate(begun):
        peer.send(bytes((INPUT,)) + f"{mark} {number}\n".encode())
    for number, peer in enumerate(begun):
        assert f"{mark} {number}\n".encode() == _output(peer, len(mark) + len(str(number)) + 2)
    for number, peer in enumerate(begun):
        # Half of them say goodbye, the others are just gone.
        if number % 2:
            peer.close()
        peer.shut()
    host.until(lambda: 0 == run(host, "exec", name, "main", "--", "true")[0])
    script = "for p in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $p; echo; done | grep -c '^cat '"
    host.until(lambda: b"0\n" == run(host, "exec", name, "main", "--", "sh", "-c", script)[1])


def test_a_client_that_does_not_read_takes_little_memory_and_stops_no_other(host: Local, name: str):
    argv = ["sh", "-c", "echo $$; exec yes fill"]
    slow = [host.client.sessions.exec(name, "main", argv, terminal=False) for _ in range(5)]
    try:
        time.sleep(1.0)
        assert (0, b"quick\n", b"") == run(host, "exec", name, "main", "--", "echo", "quick")
        used = [_memory_kib(pid) for pid in _sessions()]
        # Of its own, without what it shares with its supervisor.
        assert len(used) >= len(slow)
        assert max(used) < 24 << 10, used
    finally:
        for each in slow:
            each.shut()
    host.until(lambda: not _sessions(), _sessions)


def test_those_without_the_right_get_nothing(host: Local, name: str):
    host.pool("q", 0)
    tokens = {
        "colleague": token_of(host, "colleague", "osmo-p-user"),
        "stranger": token_of(host, "stranger", "osmo-q-admin"),
    }
    key = host.client._transport.send_json(
        "POST", f"/api/workflow/{name}/exec/task/main?entry_command=id"
    )["key"]
    for user, token in tokens.items():
        code, output, errors = run(host, "exec", name, "main", "--", "id", token=token)
        assert (125, b"") == (code, output), user
        assert b"error: " in errors
        for words in (
            ("port-forward", name, "main", "0:7001"),
            ("rsync", "upload", name, "main", ".:x"),
        ):
            code, output, errors = run(host, *words, token=token)
            # One sentence, and nothing of what rsync would say of a connection that broke.
            assert (2, b"", 1) == (code, output, errors.count(b"error")), errors
        with pytest.raises(Forbidden):
            Client(host.address, token).sessions.connect("exec", name, key)
    with pytest.raises(Unauthenticated):
        Client(host.address, "bough-none").sessions.connect("exec", name, key)
    # An admin of the pool has all of its tasks; the key of another user opens nothing.
    admin = token_of(host, "lead", "osmo-p-admin")
    assert (0, b"0\n") != run(host, "exec", name, "main", "--", "id", "-u", token=admin)[:2]
    assert 0 == run(host, "exec", name, "main", "--", "true", token=admin)[0]
    with pytest.raises(BoughError, match="key of the session is not known"):
        Client(host.address, admin).sessions.connect("exec", name, key)
    # It is still good for its own user, and for one connection.
    host.client.sessions.connect("exec", name, key).shut()
    with pytest.raises(BoughError, match="key of the session is not known"):
        host.client.sessions.connect("exec", name, key)


def test_a_session_ends_with_the_right_to_it(host: Local):
    token = token_of(host, "leaver", "osmo-p-user")
    own = Local(host.address, token, host.folder)
    other, mark = begin(own, name="leaves"), _mark()
    with started(own, "exec", other, "main", "--", "sleep", mark) as process:
        host.until(lambda: 1 == len(marked(mark)), lambda: marked(mark))
        host.done("token", "delete", "t", "--user", "leaver")
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert 125 == process.returncode
        assert b"The session was cut off: the right to it was lost: " in errors

    host.until(lambda: not marked(mark), lambda: marked(mark))
    assert "RUNNING" == host.status(other)
    host.client.workflows.cancel(other, force=True)


def test_sessions_are_audited_without_what_was_typed(host: Local, name: str):
    run(host, "exec", "-i", name, "main", "--", "cat", "-u", "-", given=b"typed secret")

    host.until(lambda: "ended" in host.client.audit.list(limit=1)[0].after)
    end_line, begin_line = map(msgspec.structs.asdict, host.client.audit.list(limit=2))
    assert ["workflow:Exec"] * 2 == [begin_line["action"], end_line["action"]]
    assert (name, "admin") == (begin_line["subject"].partition("/")[2], begin_line["actor"])
    assert ("main", "cat") == (begin_line["after"]["task"], begin_line["after"]["program"])
    assert (0, "it ended") == (end_line["after"]["exit_code"], end_line["after"]["ended"])
    assert begin_line["after"]["session"] == end_line["after"]["session"]
    assert "typed" not in str((begin_line, end_line))


def test_nothing_is_left_when_the_server_is_killed(hosted: Hosting):
    host = hosted.start()
    other, mark = begin(host, name="stays"), _mark()
    begun = _open_at_once(host, other, ["sleep", mark], PER_USER - 1)
    with started(host, "exec", other, "main", "--", "sleep", mark) as process:
        host.until(lambda: PER_USER == len(marked(mark)), lambda: marked(mark))
        hosted.stop(signal.SIGKILL)
        assert 125 == process.wait(PATIENCE_S)
    host.until(lambda: not marked(mark), lambda: marked(mark))
    for each in begun:
        each.shut()

    # The task goes on, and a new server reaches into it.
    again = hosted.start()
    assert "RUNNING" == again.status(other)
    assert (0, b"here\n", b"") == run(again, "exec", other, "main", "--", "echo", "here")
    again.client.workflows.cancel(other, force=True)


def _open_at_once(host: Local, name: str, argv: list[str], count: int) -> list[Peer]:
    """So many sessions of one command, all of which must begin."""
    begun: list[Peer] = []
    faults: list[BoughError] = []

    def open_one() -> None:
        try:
            begun.append(host.client.sessions.exec(name, "main", argv, terminal=False))
        except BoughError as error:
            faults.append(error)

    threads = [threading.Thread(target=open_one) for _ in range(count)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(PATIENCE_S)
    assert ([], count) == (faults, len(begun))
    return begun


def _shell(name: str, script: str, **fields: object) -> dict[str, object]:
    return {"name": name, "image": "none", "command": ["sh", "-c"], "args": [script], **fields}


def _mark() -> str:
    return f"86400.{uuid.uuid4().int % 10**9}"


def _output(peer: Peer, size: int) -> bytes:
    """What a command wrote, of a session that is read by hand."""
    found = b""
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < size:
        assert time.monotonic() < deadline, found
        assert not peer.lost, found
        pieces = peer.read()
        for piece in pieces:
            assert piece.data[0] in (OUTPUT, STATUS), piece
            found += bytes(piece.data[1:])
        if not pieces:
            time.sleep(0.01)
    return found


def _session_of(pid: int) -> int:
    """The process of the session that a process of a task belongs to: two above its command."""
    for _ in range(10):
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        above = int(stat[1])
        grandparent = int(Path(f"/proc/{above}/stat").read_text().rpartition(")")[2].split()[1])
        if _is_outside(above) and _is_outside(grandparent):
            return grandparent
        pid = above
    raise AssertionError(pid)


def _is_outside(pid: int) -> bool:
    return os.readlink(f"/proc/{pid}/ns/pid") == os.readlink("/proc/self/ns/pid")


def _sessions() -> list[int]:
    """The processes of sessions: children of supervisors that have a websocket."""
    found: list[int] = []
    for each in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            command = (each / "cmdline").read_bytes()
            if b"fork_server" in command and _has_connection(each):
                found.append(int(each.name))
    return found


def _has_connection(process: Path) -> bool:
    """Whether it has a connection of the internet open."""
    open_files = {os.readlink(each) for each in (process / "fd").iterdir()}
    lines = (process / "net" / "tcp").read_text().splitlines()[1:]
    return any(f"socket:[{line.split()[9]}]" in open_files for line in lines)


def _memory_kib(pid: int) -> int:
    """What a process has for itself."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    private = (line.split() for line in lines if line.startswith("Private_"))
    return sum(int(words[1]) for words in private)
