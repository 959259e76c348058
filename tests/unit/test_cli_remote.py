"""What all commands that ask a server have in common."""

from __future__ import annotations

import json
import socket

import click
import pytest

from bough.cli import main as cli
from bough.cli.command import Command
from bough.cli.multi_value_options import repeat_options
from tests.answering import Answering
from tests.unit.conftest import Osmo


@click.command(cls=Command)
def interrupted() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("status", "error_code", "code"),
    [
        (400, "USER", 2),
        (400, "USAGE", 1),
        (400, "RESOURCE", 1),
        (403, "USER", 2),
        (404, "USER", 2),
        (409, "USER", 2),
        (422, "USER", 2),
        (429, "USER", 75),
        (500, "SERVER", 10),
        (503, "DATABASE", 10),
    ],
)
def test_the_exit_code_says_whose_fault_it_is(
    osmo: Osmo, server: Answering, status: int, error_code: str, code: int
):
    server.answer("GET", "/api/pool_quota", {"message": "No.", "error_code": error_code}, status)
    assert code == osmo("pool", "list").code


def test_an_interrupt_ends_with_3(osmo: Osmo, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(cli.COMMANDS, "interrupted", __name__)
    assert (3, "", "interrupted\n") == osmo("interrupted")


def test_a_server_that_is_not_there_is_an_error_that_helps(
    osmo: Osmo, monkeypatch: pytest.MonkeyPatch
):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setenv("BOUGH_SERVER", address)
    ended = osmo("pool", "list")
    assert (10, "") == ended[:2]
    assert [
        f"Error message: Cannot reach the server at {address}: Connection refused.",
        "Error code: 10",
        "Hint: is it running (`bough serve`)? Say where: `bough login URL`, or BOUGH_SERVER",
    ] == ended.errors.splitlines()


def test_without_a_server_it_says_how_to_name_one(osmo: Osmo, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("BOUGH_SERVER")
    ended = osmo("pool", "list")
    assert (10, "") == ended[:2]
    assert "bough login URL" in ended.errors


def test_details_and_hint_of_an_error_are_printed(osmo: Osmo, server: Answering):
    body = {"message": "Wrong.", "error_code": "USER", "hint": "do this", "details": ["a\x1b[1m"]}
    server.answer("GET", "/api/pool_quota", body, 400)
    expected = "Error message: Wrong.\n  a\\x1b[1m\nError code: 400\nHint: do this\n"
    assert expected == osmo("pool", "list").errors


def test_a_detail_that_the_message_has_is_not_said_twice(osmo: Osmo, server: Answering):
    body = {"message": "Wrong: a: is 1", "error_code": "USER", "details": ["a: is 1"]}
    server.answer("GET", "/api/pool_quota", body, 400)
    assert "Error message: Wrong: a: is 1\nError code: 400\n" == osmo("pool", "list").errors


def test_who_is_not_known_is_told_how_to_log_in(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/pool_quota", {"message": "Who?", "error_code": "USER"}, 401)
    assert "bough login URL" in osmo("pool", "list").errors


def test_an_error_is_json_with_message_and_code(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/pool_quota", {"message": "No.", "error_code": "USER"}, 403)
    ended = osmo("pool", "list", "--format-type", "json")
    assert (2, "") == (ended.code, ended.errors)
    hint = "`bough profile list` shows your roles and the pools they reach"
    assert {"message": "No.", "code": 403, "hint": hint} == json.loads(ended.output)


def test_programs_get_every_detail_of_an_error(osmo: Osmo, server: Answering):
    body = {"message": "Wrong.", "error_code": "USER", "details": ["a: is 1", "b: is 2"]}
    server.answer("GET", "/api/pool_quota", body, 400)
    expected = {"message": "Wrong.", "code": 400, "details": ["a: is 1", "b: is 2"]}
    assert expected == json.loads(osmo("pool", "list", "-t", "json").output)


def test_an_option_that_may_be_repeated_takes_several_values(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/task", {"tasks": []})
    osmo("task", "list", "--status", "FAILED", "completed", "-p", "a", "b", "-v")
    query = server.asked[-1].query
    assert (["FAILED", "COMPLETED"], ["a", "b"]) == (query["statuses"], query["pools"])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["f", "--set", "a=1", "b=2"], ["f", "--set", "a=1", "--set", "b=2"]),
        (["--set", "a=1", "b=2", "f"], ["--set", "a=1", "--set", "b=2", "f"]),
        (["--set", "a=1", "f"], ["--set", "a=1", "f"]),
        (["--set", "a=1", "-t", "x", "f"], ["--set", "a=1", "-t", "x", "f"]),
        (["f", "-t", "x", "b=2"], ["f", "-t", "x", "b=2"]),
        (["f", "--set=a=1", "--", "--set", "b"], ["f", "--set=a=1", "--", "--set", "b"]),
        (["-", "--set", "a", "-"], ["-", "--set", "a", "--set", "-"]),
    ],
)
def test_only_words_that_are_too_many_become_values(arguments: list[str], expected: list[str]):
    parameters = [
        click.Argument(["file"]),
        click.Option(["--set"], multiple=True),
        click.Option(["-t"]),
        click.Option(["--dry"], is_flag=True),
    ]
    assert expected == repeat_options(parameters, arguments)


def test_where_any_number_of_words_is_right_none_becomes_a_value():
    parameters = [click.Argument(["names"], nargs=-1), click.Option(["--set"], multiple=True)]
    arguments = ["a", "--set", "b", "c"]
    assert arguments == repeat_options(parameters, arguments)
