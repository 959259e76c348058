"""What tasks wrote, as those read it who watch: in order, live, bounded, and to the end."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from bough.backends.logs.log_reader import AttemptLogReader
from bough.backends.logs.log_writer import OUT, LineCutter, LogWriter
from bough.control.records.event_stream import Recent
from bough.control.workflows import query
from bough.control.workflows.logs import KEPT, LogReader, LogSelection
from bough.model.access import Actor
from bough.model.backend import LogLine
from tests.api.house import House, prepare_team, spec
from tests.api.served import Served
from tests.api.writing import WritingBackend

ROOT = Actor("root", ("osmo-admin", "osmo-default"))
#: 2026-01-05 10:05:00 UTC.
START = 1_767_607_500_000


@pytest.fixture
def house(sqlite_files):
    address, secret = sqlite_files.make_prepared(prepare_team.__name__, prepare_team)
    with House(sqlite_files.open(address), secret=secret, backend=WritingBackend) as made:
        yield made
    sqlite_files.give_back(address)


@pytest.fixture
def pair(house):
    """A workflow of two tasks that run, and the identities of their attempts."""
    name = house.submit(2, text=spec(2, tasks=2))
    house.settle()
    return name, *_attempts(house, name)


def test_the_lines_of_all_tasks_are_one_log_in_the_order_of_time(house, pair):
    name, first, second = pair
    for second_of_day, attempt, text in (
        (1, first, "hello"),
        (3, first, "again"),
        (2, second, "hi"),
        (4, second, "there"),
        (5, first, "bye"),
    ):
        house.backend.write(attempt, START + second_of_day * 1_000, text)

    answer = house.ask("GET", f"/api/workflow/{name}/logs?follow=False")

    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert [
        "2026/01/05 10:05:01 [task-0-0] hello",
        "2026/01/05 10:05:02 [task-0-1] hi",
        "2026/01/05 10:05:03 [task-0-0] again",
        "2026/01/05 10:05:04 [task-0-1] there",
        "2026/01/05 10:05:05 [task-0-0] bye",
    ] == answer.text.splitlines()


def test_one_task_its_errors_and_its_last_lines(house, pair):
    name, first, second = pair
    for number in range(8):
        house.backend.write(first, START + number, f"line {number}", error=number % 2 == 1)
    house.backend.write(second, START + 3, "other", error=True)
    path = f"/api/workflow/{name}"

    assert [f"line {n}" for n in range(8)] == _texts(house, f"{path}/logs?task_name=task-0-0")
    assert ["line 1", "line 3", "other", "line 5", "line 7"] == _texts(house, f"{path}/error_logs")
    assert ["line 5", "line 6", "line 7"] == _texts(house, f"{path}/logs?last_n_lines=3")
    assert ["line 5", "line 7"] == _texts(house, f"{path}/error_logs?last_n_lines=2")
    assert [] == _texts(house, f"{path}/logs?last_n_lines=0")
    assert 9 == len(_texts(house, f"{path}/logs?last_n_lines=90000"))


def test_an_attempt_says_which_it_is_and_without_a_number_the_latest_is_meant(house):
    name = house.run(1, priority="LOW")
    (first,) = _attempts(house, name)
    house.backend.write(first, START, "one")
    house.finish(house.run(100))
    (second,) = _attempts(house, name)
    house.backend.write(second, START + 1_000, "two")
    path = f"/api/workflow/{name}/logs?follow=False"

    assert [
        "2026/01/05 10:05:00 [task-0-0] one",
        "2026/01/05 10:05:01 [task-0-0 retry-1] two",
    ] == house.ask("GET", path).text.splitlines()
    assert ["two"] == _texts(house, f"{path}&task_name=task-0-0")
    assert ["one"] == _texts(house, f"{path}&task_name=task-0-0&retry_id=0")
    assert ["two"] == _texts(house, f"{path}&task_name=task-0-0&retry_id=1")


def test_what_does_not_exist_is_said_before_the_first_line(house, pair):
    path = f"/api/workflow/{pair[0]}/logs"

    assert (404, "Workflow none-1 not found.") == house.refused("GET", "/api/workflow/none-1/logs")
    assert (404, "Workflow job-1 has no task x.") == house.refused("GET", f"{path}?task_name=x")
    assert (404, "Workflow job-1 has no retry 7 of task task-0-0.") == house.refused(
        "GET", f"{path}?task_name=task-0-0&retry_id=7"
    )


def test_a_log_is_live_until_the_workflow_ends(house, pair):
    name, first, second = pair
    house.backend.write(first, START, "early")
    # What runs has a log, with nothing in it yet.
    house.backend.written[second] = []
    seen: list[str] = []
    reading = threading.Thread(
        target=lambda: seen.extend(house.ask("GET", f"/api/workflow/{name}/logs").text.splitlines())
    )
    reading.start()
    house.backend.write(second, START + 1_000, "late")
    house.backend.whole |= {first, second}
    house.finish(name)
    reading.join(30)

    assert not reading.is_alive()
    assert ["early", "late"] == [line.rpartition("] ")[2] for line in seen]


def test_the_log_of_one_task_ends_with_the_task(house):
    text = spec(1) + spec(1).partition("  groups:\n")[2].replace("-0", "-1")
    name = house.submit(1, text=text)
    house.settle()
    first, second = _attempts(house, name)
    house.backend.write(first, START, "done")
    house.backend.write(second, START, "goes on")
    house.backend.whole.add(first)
    house.backend._attempts[first].ended_ms = house.time.ms
    house.backend._attempts[first].exit_code = 0
    house.settle()

    answer = house.ask("GET", f"/api/workflow/{name}/logs?task_name=task-0-0")

    assert "RUNNING" == house.status(name)
    assert ["done"] == [line.rpartition("] ")[2] for line in answer.text.splitlines()]


def test_a_log_that_is_never_said_to_be_complete_ends_after_the_workflow(house, pair):
    name, first, second = pair
    house.backend.write(first, START, "cut o")
    house.backend.write(second, START, "ff")
    house.finish(name)

    assert ["cut o", "ff"] == _texts(house, f"/api/workflow/{name}/logs?follow=True")


def test_where_nothing_is_kept_one_line_says_so(house, pair):
    name = pair[0]

    expected = "Nothing is kept of what task-0-0, task-0-1 wrote on backend default.\n"
    assert expected == house.ask("GET", f"/api/workflow/{name}/logs").text
    assert expected == house.ask("GET", f"/api/workflow/{name}/logs?last_n_lines=5").text


def test_what_waits_has_written_nothing(house):
    house.run(100)
    name = house.submit(100)
    house.settle()

    assert "" == house.ask("GET", f"/api/workflow/{name}/logs?follow=False").text


def test_a_server_that_stops_says_so_at_the_end_of_a_stream(house, pair):
    name, first, second = pair
    house.backend.write(first, START, "one")
    house.backend.write(second, START, "two")
    house.engine.stopping.set()

    lines = house.ask("GET", f"/api/workflow/{name}/logs").text.splitlines()

    assert "(The server is being stopped; ask again to read on.)" == lines[-1]
    assert 3 == len(lines)


def test_a_line_is_one_line_of_valid_text_whatever_was_written(house, pair):
    name, first, second = pair
    house.backend.write(first, START, "10%\r20%\r\n\u2028x\x85y\udc80")
    house.backend.write(second, START, "")

    answer = house.ask("GET", f"/api/workflow/{name}/logs?follow=False")

    assert "2026/01/05 10:05:00 [task-0-0] 10% 20%  x y?\n" in answer.content.decode()
    assert 2 == len(answer.content.decode().splitlines())


def test_events_are_told_until_the_workflow_ends(house, pair):
    name = pair[0]
    texts: list[str] = []
    path = f"/api/workflow/{name}/events"
    reading = threading.Thread(target=lambda: texts.append(house.ask("GET", path).text))
    reading.start()
    house.finish(name)
    reading.join(30)

    assert not reading.is_alive()
    assert texts[0].splitlines()[0].endswith(f"[{name}] Submitted: {name}")
    assert texts[0].splitlines()[-1].endswith(f"[{name}] Completed: COMPLETED")
    only = house.ask("GET", f"{path}?task_name=task-0-1").text.splitlines()
    assert not any("[task-0-0] " in line for line in only)
    assert ["Scheduled:", "Started:", "Completed:"] == [line.split()[3] for line in only]


def test_a_failed_attempt_says_where_its_errors_are(house):
    name = house.run(1)
    task = house.get(f"/api/workflow/{name}")["groups"][0]["tasks"][0]
    assert task["error_logs"] is None
    house.send("POST", f"/api/workflow/{name}/cancel?force=True")
    house.settle()

    task = house.get(f"/api/workflow/{name}")["groups"][0]["tasks"][0]

    end = f"/api/workflow/{name}/error_logs?task_name=task-0-0&retry_id=0"
    assert task["error_logs"].endswith(end)
    (line,) = house.get("/api/workflow?all_pools=True")["workflows"]
    assert line["error_logs"].endswith(f"/api/workflow/{name}/error_logs")


@pytest.mark.served
def test_many_followers_delay_no_other_request(tmp_path):
    with Served(tmp_path / "data", "--backend", "virtual", "--gpus", "8") as server:
        server.ask("POST", "/api/pool/default/workflow", json={"file": spec(1)})
        server.until(lambda: server.get("/api/workflow/job-1")["status"] == "RUNNING")
        opened, ended = threading.Semaphore(0), threading.Semaphore(0)

        def watch() -> None:
            headers = {"authorization": f"Bearer {server.token}"}
            url = f"{server.address}/api/workflow/job-1/events"
            with httpx.stream("GET", url, headers=headers, timeout=60) as stream:
                lines = stream.iter_lines()
                next(lines)
                opened.release()
                last = [*lines][-1]
            if last.endswith("[job-1] Failed: FAILED_CANCELED"):
                ended.release()

        # More than the threads that there are for answers.
        watchers = [threading.Thread(target=watch, daemon=True) for _ in range(45)]
        for each in watchers:
            each.start()
        assert all(opened.acquire(timeout=60) for _ in watchers)

        assert 200 == server.ask("GET", "/api/pool_quota?all_pools=True").status_code
        server.ask("POST", "/api/workflow/job-1/cancel?force=True")

        assert all(ended.acquire(timeout=60) for _ in watchers)


# The reader itself


def test_many_tasks_with_much_to_say_are_read_in_order_with_little_in_memory(house, monkeypatch):
    monkeypatch.setattr("bough.control.workflows.logs.MOST_KEPT", 100)
    monkeypatch.setattr("bough.control.workflows.logs.LEAST_KEPT", 4)
    monkeypatch.setattr(WritingBackend, "part", 50)
    name = house.submit(20, text=spec(20, tasks=20))
    house.settle()
    attempts = _attempts(house, name)
    for number in range(2_000):
        house.backend.write(attempts[number * 7 % 20], START + number, str(number))
    house.backend.whole |= set(attempts)
    house.finish(name)
    reader = _reader(house, name)
    most = 0

    texts: list[str] = []
    while not reader.ended:
        texts += [each.text for each in reader.read(ROOT)]
        most = max(most, sum(len(each.buffer) for each in reader._sources.values()))

    assert [str(number) for number in range(2_000)] == texts
    assert most <= 100


@pytest.mark.parametrize("together", [0, 2_000, 1 << 20])
def test_readers_that_give_up_what_they_keep_read_every_line_once(house, monkeypatch, together):
    monkeypatch.setattr("bough.control.workflows.logs.ALL_KEPT", together)
    monkeypatch.setattr("bough.control.workflows.logs.AT_ONCE", 1_000)
    monkeypatch.setattr(WritingBackend, "part", 7)
    name = house.submit(4, text=spec(4, tasks=4))
    house.settle()
    attempts = _attempts(house, name)
    for number in range(200):
        attempt = attempts[number * 7 % 4]
        house.backend.write(attempt, START + number, str(number), error=number % 3 == 0)
    house.backend.whole |= set(attempts)
    house.finish(name)
    readers = [_reader(house, name), _reader(house, name, errors=True)]
    readers += [_reader(house, name, last_lines=61), _reader(house, name, last_lines=20)]
    texts: list[list[str]] = [[] for _ in readers]

    while not all(each.ended for each in readers):
        for reader, seen in zip(readers, texts, strict=True):
            seen += [each.text for each in reader.read(ROOT)]
            assert KEPT.total <= together
    for each in readers:
        each.close()

    lines = [str(number) for number in range(200)]
    assert [lines, lines[::3], lines[-61:], lines[-20:]] == texts
    assert 0 == KEPT.total


def test_a_log_that_loses_its_beginning_while_it_is_read_is_read_on_after_it(
    house, monkeypatch, tmp_path
):
    monkeypatch.setattr("bough.control.workflows.logs.ALL_KEPT", 0)
    name = house.run(1)
    writer, lines = LogWriter(tmp_path, 0), LineCutter(OUT)
    monkeypatch.setattr(
        house.backend,
        "read_log",
        lambda _, position, last_lines, limit_bytes: (
            AttemptLogReader(tmp_path, finished=False).read(position, limit_bytes)
            if last_lines is None
            else AttemptLogReader(tmp_path, finished=False).read_last(last_lines)
        ),
    )
    reader, texts = _reader(house, name), []
    for number in range(3_000):
        writer.write(lines.feed(b"%06d" % number + b"." * 400 + b"\n", number), START + number)
        if number % 150 == 0:
            texts += [each.text for each in reader.read(ROOT)]
    while found := reader.read(ROOT):
        texts += [each.text for each in found]
    writer.close()

    numbers = [int(each[:6]) for each in texts if not each.startswith("[")]
    lost = [int(each.split()[0][1:]) for each in texts if each.startswith("[")]
    assert 2_999 == numbers[-1]
    assert sorted(set(numbers)) == numbers
    # What was read and not given is counted, and at most a part that was given already.
    assert 400 * (3_000 - len(numbers)) < sum(lost)


@pytest.mark.served
def test_many_slow_readers_of_large_logs_take_little_memory(tmp_path):
    write = "for n in range(300): print('%06d' % n + 'x' * 16000)"
    task = """\
    - {{name: t{0}, image: i, lead: {1}, command: [python3, -c, "{2}"]}}
"""
    # Whatever CPUs and memory the machine has.
    text = (
        spec(2, tasks=2).partition("    - {")[0].replace(", cpu: 1, memory: 1Gi, storage: 1Gi", "")
    )
    text += "".join(task.format(n, "true" if n == 0 else "false", write) for n in range(2))
    with (
        Served(tmp_path / "data", "--backend", "local", "--gpus", "2") as server,
        ExitStack() as stack,
    ):
        assert (
            200 == server.ask("POST", "/api/pool/default/workflow", json={"file": text}).status_code
        )
        server.until(lambda: server.get("/api/workflow/job-1")["status"] == "COMPLETED")
        before = _memory(server)
        host, _, port = server.address.removeprefix("http://").partition(":")
        head = f"HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n\r\n"
        for path in ("logs", "logs?last_n_lines=600") * 20:
            made = stack.enter_context(socket.socket())
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            made.connect((host, int(port)))
            made.sendall(f"GET /api/workflow/job-1/{path} {head}".encode())
            assert made.recv(15) == b"HTTP/1.1 200 OK"
        reads: list[int] = []
        server.until(lambda: reads.append(_processor(server)) or reads[-1:] == reads[-8:-7])

        # A client that reads gets all of it meanwhile.
        whole = server.ask("GET", "/api/workflow/job-1/logs").text.splitlines()

        assert 600 == len(whole)
        assert {16_006} == {len(each.rpartition("] ")[2]) for each in whole}
        after = _memory(server)
        assert after / before < 2.5


def _memory(server: Served) -> int:
    """The most that the server ever had, in KiB."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def _processor(server: Served) -> int:
    """The processor time of a server so far, in tenths of a second."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) // 10


def test_of_lines_of_the_same_time_each_task_keeps_its_order(house, pair):
    name, first, second = pair
    for text in "abcdefg":
        house.backend.write(first, START, text)
    for text in "hij":
        house.backend.write(second, START, text)

    assert list("abcdefghij") == [each.text for each in _reader(house, name).read(ROOT)]
    tail = _reader(house, name, last_lines=4)
    assert list("ghij") == [each.text for each in tail.read(ROOT)]
    assert [] == tail.read(ROOT)
    house.backend.write(first, START, "next")
    assert ["next"] == [each.text for each in tail.read(ROOT)]


def test_attempts_that_begin_later_join_the_log(house):
    house.run(100)
    name = house.submit(100)
    house.settle()
    reader = _reader(house, name)
    assert [] == reader.read(ROOT)
    assert not reader.ended
    house.finish("job-1")
    (attempt,) = _attempts(house, name)
    house.backend.written[attempt] = [LogLine(START, "at last")]

    assert ["at last"] == [each.text for each in reader.read(ROOT)]


def test_nothing_is_looked_up_while_nothing_happens(house, pair, monkeypatch):
    name, first, second = pair
    house.backend.write(first, START, "one")
    house.backend.write(second, START, "two")
    reader = _reader(house, name)
    reader.read(ROOT)
    looked: list[str] = []
    real = query.get_workflow
    monkeypatch.setattr(
        query,
        "get_workflow",
        lambda *arguments, **options: looked.append("") or real(*arguments, **options),
    )
    for _ in range(10):
        reader.read(ROOT)
    assert [] == looked
    house.finish(name)
    looked.clear()
    reader.read(ROOT)
    assert [""] == looked


def _reader(house, name, **wanted):
    backends = {"default": house.backend}
    reader = LogReader(
        house.site, backends, Recent(house.site, look_s=0), name, LogSelection(**wanted)
    )
    reader.open(ROOT)
    return reader


def _attempts(house, name):
    document = house.get(f"/api/workflow/{name}")
    return [
        f"{task['task_uuid']}/{task['retry_id']}"
        for group in document["groups"]
        for task in group["tasks"]
    ]


def _texts(house, path):
    path += "&" if "?" in path else "?"
    path += "" if "follow" in path else "follow=False"
    return [line.rpartition("] ")[2] for line in house.ask("GET", path).text.splitlines()]
