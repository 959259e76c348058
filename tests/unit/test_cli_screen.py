"""Colours, widths, times and completion: what depends on where the output goes."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import click
import pytest

from bough.cli import screen
from bough.cli.main import program, run
from bough.cli.screen import Screen, find_screen
from bough.cli.tables import render_table
from bough.cli.times import duration, show_age, show_time
from tests.answering import Answering
from tests.unit.conftest import Osmo

GREEN = "\x1b[32mRUNNING\x1b[0m"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch):
    """A terminal of so many columns, with colours."""

    def use(**fields: object) -> None:
        found = Screen(**{"colour": True, "width": 80, **fields})  # pyright: ignore
        monkeypatch.setattr(screen, "screen", lambda: found)
        for module in ("tables", "times"):
            monkeypatch.setattr(f"bough.cli.{module}.screen", lambda: found)

    return use


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


# Colours


@pytest.mark.parametrize(
    ("terminal", "environment", "colour"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
    ],
)
def test_there_are_colours_where_a_terminal_is(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, environment: dict[str, str], colour: bool
):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for stream in ("stdout", "stderr"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: terminal)
    found = find_screen("bough")
    assert (colour, colour) == (found.colour, found.error_colour)
    assert terminal == (found.width is not None)


def test_a_status_has_the_colour_of_what_it_means(terminal):
    terminal()
    _, line = render_table(("Name", "Status", "N"), [("a", "RUNNING", 5)], status=1).splitlines()
    assert f"a     {GREEN}  5" == line


def test_wrong_usage_is_told_in_the_colours_of_errors(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    found = Screen(error_colour=True)
    monkeypatch.setattr("bough.cli.main.find_screen", lambda _: found)
    # The library takes colours away where no terminal is; here is none, but it should be shown.
    monkeypatch.setattr("click.utils.should_strip_ansi", lambda *_: False)
    assert 2 == run(["pool", "lst"])
    assert capsys.readouterr().err.startswith("\x1b[31m\x1b[1merror:\x1b[0m There is no command")


def test_nothing_is_coloured_in_a_pipe(bough: Osmo, server: Answering):
    server.answer("GET", "/api/workflow", {"workflows": [workflow("a-1")], "more_entries": False})
    assert "\x1b" not in bough("workflow", "list").output


# Width


def test_a_column_is_cut_where_the_terminal_is_too_narrow(terminal):
    terminal(width=20, colour=False)
    table = render_table(("Name", "Why"), [("abcdefgh", "0123456789abcdef")], cut=1)
    assert ["NAME      WHY", "abcdefgh  012345678…"] == table.splitlines()


def test_nothing_is_cut_in_a_pipe(terminal):
    terminal(width=None, colour=False)
    table = render_table(("Name", "Why"), [("a" * 60, "b" * 60)], cut=1)
    assert f"{'a' * 60}  {'b' * 60}" == table.splitlines()[1]


def test_units_keep_their_spelling_and_numbers_need_none(terminal):
    terminal(colour=False)
    header, _ = render_table(("Node", "Memory [Gi]", "GPU [#]"), [("a", 1, 2)]).splitlines()
    assert "NODE  MEMORY [Gi]  GPU" == header


def test_the_use_of_pools_fits_80_columns(bough: Osmo, server: Answering):
    usage = {"quota_used": "100", "quota_limit": "1000", "total_capacity": "10000"}
    pools = [
        {"name": name, "status": "MAINTENANCE", "description": "x" * 40, "resource_usage": usage}
        for name in ("research", "research--vision")
    ]
    server.answer("GET", "/api/pool_quota", {"node_sets": [{"pools": pools}]})
    lines = bough("pool", "list", "--mode", "used").output.splitlines()
    titles = ["POOL", "STATUS", "QUOTA USED", "QUOTA LIMIT", "USAGE", "CAPACITY"]
    assert titles == re.split("  +", lines[0])
    assert lines[2].endswith("10000 (shared)")
    assert max(map(len, lines)) <= 80


# Workflows on 80 columns


def workflow(name: str, **more: object) -> dict[str, object]:
    return {
        "user": "alice",
        "name": name,
        "submit_time": "2026-01-05T10:00:00",
        "start_time": None,
        "end_time": None,
        "status": "PENDING",
        "pool": "research--vision",
        "priority": "NORMAL",
        "labels": {},
        "overview": f"https://bough.example.com/workflows/{name}",
        "gpus": 8,
        "wait_reason": None,
        **more,
    }


def test_workflows_are_listed_with_what_people_ask_first(bough: Osmo, server: Answering):
    waiting = workflow("evaluate-model-12", wait_reason="owner_limit", end_time=None)
    ran = workflow(
        "train-1",
        status="COMPLETED",
        start_time="2026-01-05T10:00:30",
        end_time="2026-01-05T13:12:59",
        gpus=128,
        priority="LOW",
    )
    failed = workflow("x-3", status="FAILED_QUEUE_TIMEOUT", end_time="2026-01-05T10:05:00")
    page = {"workflows": [failed, ran, waiting], "more_entries": False}
    server.answer("GET", "/api/workflow", page)
    header, first, second, third = bough("workflow", "list").output.splitlines()
    titles = ["WORKFLOW", "STATUS", "POOL", "GPUS", "PRIORITY", "TIME", "REASON"]
    assert titles == header.split()
    assert first.startswith(
        "evaluate-model-12  PENDING               research--vision     8  NORMAL"
    )
    assert first.endswith("  owner_limit")
    assert ["train-1", "COMPLETED", "research--vision", "128", "LOW", "3h12m"] == second.split()
    assert "5m" == third.split()[-1]
    titles = bough("workflow", "list", "-t", "json").output
    assert '"wait_reason": "owner_limit"' in titles


def test_the_list_of_workflows_fits_80_columns(bough: Osmo, server: Answering):
    rows = [
        workflow("train-large-model-7", status="RUNNING", start_time="2026-01-05T10:00:00"),
        workflow("evaluate-12", wait_reason="quota", submit_time=datetime.now(UTC).isoformat()),
    ]
    server.answer("GET", "/api/workflow", {"workflows": rows, "more_entries": False})
    assert max(map(len, bough("workflow", "list").output.splitlines())) <= 80


def test_users_are_named_where_there_are_several(bough: Osmo, server: Answering):
    rows = [workflow("a-1"), workflow("b-1", user="bob")]
    server.answer("GET", "/api/workflow", {"workflows": rows, "more_entries": False})
    header, first, _ = bough("workflow", "list", "--all-users").output.splitlines()
    assert ["WORKFLOW", "USER", "STATUS"] == header.split()[:3]
    assert ["b-1", "bob", "PENDING"] == first.split()[:3]


# Times


@pytest.mark.usefixtures("berlin")
def test_times_are_those_of_the_readers_zone(bough: Osmo, server: Answering):
    entry = {
        "number": 1,
        "at": "2026-07-05T22:30:00.000",
        "actor": "ann",
        "action": "pool.create",
        "subject": "pool/a",
        "origin": "::1",
        "before": None,
        "after": None,
    }
    server.answer("GET", "/api/audit", {"entries": [entry]})
    os.environ["TZ"] = "Europe/Berlin"
    time.tzset()
    assert "2026-07-06 00:30  ann" in bough("audit", "list").output
    assert "2026-07-05 22:30 UTC  ann" in bough("audit", "list", "--utc").output


@pytest.mark.usefixtures("berlin")
def test_lines_of_logs_and_events_have_the_time_of_the_readers_zone(bough: Osmo, server: Answering):
    at_night = "2026/07/05 22:30:00 [a] it is 2026/07/05 22:30:00\n"
    others = "2026/01/05 10:05:01 [a] in winter\n(Nothing is kept of it.)\n2026/13/45 odd\n"
    os.environ["TZ"] = "Europe/Berlin"
    time.tzset()
    server.answer("GET", "/api/workflow/wf-1", {"name": "wf-1", "status": "COMPLETED"})
    for kind in ("logs", "events"):
        server.answer("GET", f"/api/workflow/wf-1/{kind}", (at_night + others).encode())
        _, *lines = bough("workflow", kind, "wf-1").output.splitlines()
        expected = [
            "2026/07/06 00:30:00 [a] it is 2026/07/05 22:30:00",
            "2026/01/05 11:05:01 [a] in winter",
            "(Nothing is kept of it.)",
            "2026/13/45 odd",
        ]
        assert expected == lines
        heading = f"Workflow wf-1 has {kind}:\n"
        assert heading + at_night + others == bough("workflow", kind, "wf-1", "--utc").output


@pytest.mark.usefixtures("berlin")
def test_under_the_name_osmo_lines_of_logs_stay_as_they_are(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/workflow/wf-1/logs", b"2026/07/05 22:30:00 [a] x\n")
    os.environ["TZ"] = "Europe/Berlin"
    time.tzset()
    assert osmo("workflow", "logs", "wf-1").output.endswith("\n2026/07/05 22:30:00 [a] x\n")


@pytest.mark.usefixtures("berlin")
def test_scripts_for_osmo_read_times_as_ever(terminal):
    terminal(osmo=True, colour=False)
    assert "Jul 06, 2026 00:30 CEST" == show_time("2026-07-05T22:30:00.000")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"),
        (59, "59s"),
        (60, "1m"),
        (3_599, "59m"),
        (3_600, "1h"),
        (11_579, "3h12m"),
        (86_400, "1d"),
        (460_800, "5d8h"),
        (864_000, "10d"),
        (900_000, "10d"),
    ],
)
def test_a_duration_is_told_in_its_largest_units(seconds: int, text: str):
    assert text == duration(seconds)


def test_an_age_is_counted_to_the_end_or_to_now():
    assert "1h" == show_age("2026-01-05T10:00:00", "2026-01-05T11:00:59")
    assert ("-", "0s") == (show_age(None), show_age(datetime.now(UTC).isoformat()))


# Completion


def completions(*words: str) -> list[str]:
    from click.shell_completion import ShellComplete

    *before, last = words
    found = ShellComplete(program, {}, "bough", "_BOUGH_COMPLETE").get_completions(before, last)
    return [each.value for each in found]


@pytest.mark.usefixtures("logged_in")
def test_a_shell_completes_ids_and_pools(server: Answering):
    rows = [workflow("hello-1"), workflow("train-2")]
    server.answer("GET", "/api/workflow", {"workflows": rows, "more_entries": False})
    server.answer("GET", "/api/pool", {"pools": {"team": {}, "team--a": {}, "other": {}}})
    assert ["hello-1"] == completions("workflow", "logs", "he")
    assert ["hello-1", "train-2"] == completions("workflow", "cancel", "hello-1", "")
    assert ["team", "team--a"] == completions("workflow", "submit", "--pool", "te")
    assert ["team", "team--a"] == completions("pool", "show", "t")
    assert ["team"] == completions("pool", "subpool", "list", "team")[:1]


def test_a_shell_without_a_server_completes_nothing(
    login_file, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert not login_file.exists()
    assert [] == completions("workflow", "logs", "")
    monkeypatch.setenv("BOUGH_SERVER", "http://127.0.0.1:9")
    assert [] == completions("workflow", "logs", "")
    monkeypatch.setenv("BOUGH_SERVER", "no address")
    assert [] == completions("pool", "show", "")
    assert ("", "") == capsys.readouterr()


def test_the_screen_of_a_command_is_that_of_the_program():
    assert Screen() == screen.screen()
    with click.Context(program, obj=Screen(utc=True)):
        assert screen.screen().utc


def test_an_unknown_workflow_gets_the_nearest_name(bough: Osmo, server: Answering):
    missing = {"message": "Workflow trian-1 not found."}
    server.answer("GET", "/api/workflow/trian-1", missing, 404)
    rows = [workflow("eval-7"), workflow("train-1")]
    server.answer("GET", "/api/workflow", {"workflows": rows, "more_entries": False})

    ended = bough("workflow", "query", "trian-1")

    assert "error: Workflow trian-1 not found.\nhint: did you mean train-1?\n" == ended.errors


def has_tasks(server: Answering, *names: str) -> None:
    tasks = [{"name": name, "status": "RUNNING"} for name in names]
    groups = [{"name": "g", "tasks": tasks}]
    server.answer("GET", "/api/workflow/wf-1", {"status": "RUNNING", "groups": groups})


@pytest.mark.parametrize(
    ("tasks", "task", "hint"),
    [
        (("main",), "true", "its only task is main"),
        (("train", "evaluate"), "trian", "did you mean train?"),
        (("train", "evaluate"), "wf-1", "its tasks are train, evaluate"),
        (("worker-0", "worker-1"), "worker", "its tasks are worker-0, worker-1"),
    ],
)
def test_an_unknown_task_gets_tasks_of_its_workflow(
    bough: Osmo, server: Answering, tasks: tuple[str, ...], task: str, hint: str
):
    missing = {"message": f"Workflow wf-1 has no task {task}."}
    rows = [workflow("wf-2"), workflow("wf-3")]
    server.answer("GET", "/api/workflow", {"workflows": rows, "more_entries": False})
    server.answer("GET", "/api/workflow/wf-1/logs", missing, 404)
    server.answer("POST", f"/api/workflow/wf-1/exec/task/{task}", missing, 404)
    has_tasks(server, *tasks)
    said = f"error: Workflow wf-1 has no task {task}.\nhint: {hint}\n"

    assert said == bough("workflow", "logs", "wf-1", "--no-follow", "--task", task).errors
    assert (125, said) == bough("workflow", "exec", "wf-1", task, "--", "true")[::2]


def test_exec_without_a_task_takes_the_only_one_or_says_that_it_is_missing(
    bough: Osmo, server: Answering
):
    server.answer("POST", "/api/workflow/wf-1/exec/task/main", {"message": "not now"}, 409)
    has_tasks(server, "main")
    has_tasks(server, "a", "b")

    assert (125, "", "error: not now\n") == bough("workflow", "exec", "wf-1", "--", "hostname")
    assert ["hostname"] == server.last.query["entry_command"]
    assert (
        "error: TASK is missing: say in which task of wf-1 to run the command.\n"
        "hint: its tasks are a, b\n"
    ) == bough("workflow", "exec", "wf-1", "-i", "--", "hostname").errors
