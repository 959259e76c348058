"""Ports and files of tasks that run, and sessions as OSMO's client has them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import struct
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError

import pytest

from tests.e2e import osmo_wire
from tests.e2e.local import Hosting, Local, hosting
from tests.e2e.osmo_wire import OsmoSocket
from tests.e2e.served import PATIENCE_S
from tests.e2e.sessions import Forwarded, begin, run, started, token_of

FORWARD = "api/router/portforward/{}/client"
EXEC = "api/router/exec/{}/client"


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosting]:
    with hosting(tmp_path_factory.mktemp("forwarding"), 4) as found:
        found.start().pool("p", 4)
        yield found


@pytest.fixture(scope="module")
def host(hosted: Hosting) -> Local:
    return hosted.start()


@pytest.fixture(scope="module")
def name(host: Local) -> str:
    return begin(host)


@contextlib.contextmanager
def forwarded(host: Local, name: str, *ports: str) -> Iterator[Forwarded]:
    with started(host, "port-forward", name, "main", *ports) as process:
        yield Forwarded(process)


def test_connections_go_both_ways_at_once_and_each_half_ends_for_itself(host: Local, name: str):
    data = os.urandom(2_000_003)
    with forwarded(host, name, "0:7001") as echo, echo.connect() as connection:
        sender = threading.Thread(target=connection.sendall, args=(data,))
        sender.start()
        assert data == _exactly(connection, len(data))
        sender.join(PATIENCE_S)
    with forwarded(host, name, "0:7004") as count, count.connect() as connection:
        connection.sendall(data)
        # The task answers when it has seen the end, on a connection that is still open.
        connection.shutdown(socket.SHUT_WR)
        assert str(len(data)).encode() == _all(connection)


def test_many_connections_and_slow_ones_beside_them(host: Local, name: str):
    with forwarded(host, name, "0:7001", "0:7003") as ports:
        other = int(ports.process.stdout.readline().split(b":")[1].split()[0])
        slow = [socket.create_connection(("127.0.0.1", other), PATIENCE_S) for _ in range(5)]
        for each in slow:
            # A hundred megabytes for a client that reads none of it.
            each.sendall(b"100000000\n")
        many = [ports.connect() for _ in range(40)]
        for number, each in enumerate(many):
            each.sendall(f"{number}".encode())
        for number, each in enumerate(many):
            assert f"{number}".encode() == _exactly(each, len(f"{number}"))
        for each in (*many, *slow):
            each.close()


def test_datagrams_go_there_and_back(host: Local, name: str):
    with forwarded(host, name, "0:7002", "--udp") as port:
        for text in (b"first", b"second", os.urandom(9_000)):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
                own.settimeout(PATIENCE_S)
                own.connect(("127.0.0.1", port.port))
                own.send(text)
                assert text[::-1] == own.recv(65_536)


def test_only_the_loopback_is_listened_on_and_only_the_task_reached(host: Local, name: str):
    with forwarded(host, name, "0:7001") as port:
        listening = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
        # In the kernel's form: the bytes of the address turned round, and state 0A.
        found = [line for line in listening.splitlines() if f":{port.port:04X} " in line]
        assert ["0100007F"] == [
            each.split()[1].partition(":")[0] for each in found if " 0A " in each
        ]
    server = int(host.address.rpartition(":")[2])
    with forwarded(host, name, f"0:{server}") as port, port.connect() as connection:
        # That port of the task is not that of the server.
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"" == _all(connection)
    code, _, errors = run(host, "port-forward", name, "main", "70000")
    assert (2, True) == (code, b"ports are 1 to 65535" in errors)
    assert 2 == run(host, "port-forward", name, "main", "80", "--host", "0.0.0.0")[0]  # noqa: S104


def test_a_folder_goes_there_and_back_and_only_what_has_changed(
    host: Local, name: str, tmp_path: Path
):
    assert shutil.which("rsync"), "make packages"
    source = tmp_path / "project"
    (source / "deep" / "er").mkdir(parents=True)
    for number in range(50):
        (source / "deep" / f"{number}.bin").write_bytes(os.urandom(20_000))
    (source / "deep" / "er" / "link").symlink_to("../0.bin")

    code, output, errors = run(host, "rsync", "upload", name, "main", f"{source}/:kept/project")
    assert (0, b"") == (code, errors)
    sent = _sent(output)
    assert sent > 1_000_000
    (source / "deep" / "7.bin").write_bytes(b"changed")
    code, output, errors = run(host, "rsync", "upload", name, "main", f"{source}/:kept/project")
    assert (0, b"") == (code, errors)
    assert _sent(output) < sent / 10
    back = tmp_path / "back"
    path = f"/osmo/work/kept/project/:{back}"
    assert (0, b"") == (code, errors)
    assert 0 == run(host, "rsync", "download", name, "main", path)[0]
    assert _content(source) == _content(back)
    # In the task it is the task's own.
    owners = ("exec", name, "main", "--", "sh", "-c", "find kept ! -uid $(id -u); ls /tmp")
    assert (0, b"", b"") == run(host, *owners)
    code, _, errors = run(host, "rsync", "download", name, "main", f"/etc/:{tmp_path / 'etc'}")
    assert (2, True) == (code, b"none of the folders" in errors)
    assert 0 != run(host, "rsync", "upload", name, "main", f"{tmp_path / 'none'}:x")[0]


# As OSMO's client does it.


def test_a_command_as_osmos_client_runs_it(host: Local, name: str):
    found = osmo_wire.exec_into(host.address, host.token, name, "main", "/bin/sh -i")
    with OsmoSocket(found, EXEC.format(name), host.token) as opened:
        assert 101 == opened.status
        # Nothing was agreed on that it would have to undo.
        assert {"sec-websocket-extensions", "sec-websocket-protocol"}.isdisjoint(opened.headers)
        opened.send(json.dumps({"Rows": 33, "Cols": 77}).encode())
        opened.send(b"stty size; ec''ho $((1+1))nd\r")
        assert b"33 77" in opened.until(b"2nd")
        opened.send(osmo_wire.RESIZE + json.dumps({"Rows": 44, "Cols": 88}).encode())
        opened.send(b"stty size; ec''ho $((1+2))rd\r")
        assert b"44 88" in opened.until(b"3rd")
        opened.send(b"exit\r")

        assert 1000 == opened.rest()[1]


def test_a_command_that_ends_at_once_and_one_that_does_not_exist(host: Local, name: str):
    for command, expected in (("echo 'a  b'", b"a  b\r\n"), ("none-such", b"no command")):
        found = osmo_wire.exec_into(host.address, host.token, name, "main", command)
        with OsmoSocket(found, EXEC.format(name), host.token) as opened:
            opened.send(json.dumps({"Rows": 24, "Cols": 80}).encode())
            shown, code = opened.rest()
        assert (True, 1000) == (expected in shown, code)


def test_a_port_as_osmos_client_forwards_it(host: Local, name: str):
    found = osmo_wire.forward(host.address, host.token, name, "main", udp=False, port=7001)
    path = FORWARD.format(name)
    key, data = f"PORTFORWARD-{uuid.uuid4().hex}", os.urandom(100_000)
    with OsmoSocket(found, path, host.token) as control:
        assert 101 == control.status
        assert osmo_wire.ask(host.address, host.token, "GET", "api/router/version")
        control.send(json.dumps({"key": key, "cookie": found["cookie"]}).encode())
        with OsmoSocket(found, path, host.token, key) as opened:
            assert 101 == opened.status
            for start in range(0, len(data), osmo_wire.BUFFER):
                opened.send(data[start : start + osmo_wire.BUFFER])
            came = b""
            while len(came) < len(data):
                came += opened.receive()
            assert data == came
            # All ends with what controls it.
            control.close()
            opened.rest()


def test_a_key_that_was_not_announced_opens_nothing(host: Local, name: str):
    found = osmo_wire.forward(host.address, host.token, name, "main", udp=False, port=7001)
    other = f"PORTFORWARD-{uuid.uuid4().hex}"
    with OsmoSocket(found, FORWARD.format(name), host.token, other) as refused:
        assert (404, True) == (refused.status, "not known" in refused.refusal)


def test_datagrams_as_osmos_client_forwards_them(host: Local, name: str):
    found = osmo_wire.forward(host.address, host.token, name, "main", udp=True, port=7002)
    with OsmoSocket(found, FORWARD.format(name), host.token) as opened:
        for port in (50_001, 50_002):
            address = socket.inet_aton("127.0.0.1") + struct.pack(">H", port)
            opened.send(address + b"hello")
            assert address + b"olleh" == opened.receive()


def _line(text: str, kind: str = "STDOUT") -> bytes:
    """A line as OSMO's control container sends it: an object as JSON, as a string in JSON."""
    fields = {"Source": "main", "Time": "2026-11-17T18:00:00Z", "Text": text, "IOType": kind}
    return json.dumps(json.dumps(fields)).encode()


def _log_stream(host: Local, name: str, retry_id: int = 0, token: str = "") -> OsmoSocket:
    found = {"router_address": "ws" + host.address.removeprefix("http"), "cookie": ""}
    path = f"api/logger/workflow/{name}/osmo_ctrl/main/retry_id"
    return OsmoSocket(found, path, token or host.token, str(retry_id))


def test_lines_that_osmos_control_container_sends_are_in_the_log(host: Local):
    name = begin(host, name="told")
    with _log_stream(host, name) as first, _log_stream(host, name) as second:
        for number in range(2_000):
            first.send(_line(f"line {number}\n"))
        second.send(_line("an error", "STDERR"))
        second.send(_line("{}", "METRICS"))
        for each in (first, second):
            each.send(_line("", "LOG_DONE"))
            assert {"action": "log_done"} == json.loads(each.receive())
    host.until(lambda: "[main] line 1999" in host.log(name), lambda: host.shown(name))
    sent = [f"[main] line {number}" for number in range(2_000)]
    assert sent == [line for line in host.log(name) if "] line " in line]
    errors = host.done("workflow", "logs", name, "--error", "--no-follow")
    assert "[main] an error" in errors
    assert "line" not in errors
    host.client.workflows.cancel(name, force=True)


def test_a_stream_of_lines_is_closed_with_the_reason_where_none_can_come(host: Local, name: str):
    for other, retry_id in (("none-such", 0), (name, 7)):
        with _log_stream(host, other, retry_id) as refused:
            assert (101, 4000) == (refused.status, refused.rest()[1])
    for wrong, code in ((b"no json", 1002), (b"[1]", 1002), (_line("b", "BARRIER"), 1008)):
        with _log_stream(host, name) as opened:
            opened.send(wrong)
            assert code == opened.rest()[1]
    token = token_of(host, "reader", "osmo-p-user")
    with _log_stream(host, name, token=token) as refused:
        assert 403 == refused.status


def test_that_a_task_has_ended_is_told_as_osmos_client_expects_it(host: Local):
    other = begin(host, name="done")
    host.client.workflows.cancel(other, force=True)
    host.over(other)
    with pytest.raises(HTTPError) as raised:
        osmo_wire.exec_into(host.address, host.token, other, "main", "true")
    with raised.value as refused:
        assert 410 == refused.code


def _exactly(connection: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        data = connection.recv(65_536)
        assert data, len(found)
        found += data
    return bytes(found)


def _all(connection: socket.socket) -> bytes:
    found = bytearray()
    with contextlib.suppress(ConnectionError):
        while data := connection.recv(65_536):
            found += data
    return bytes(found)


def _sent(output: bytes) -> int:
    """`sent 1,234 bytes  received …`, as rsync says it."""
    return int(output.split(b"sent ")[1].split()[0].replace(b",", b""))


def _content(folder: Path) -> dict[str, object]:
    return {
        str(each.relative_to(folder)): os.readlink(each) if each.is_symlink() else each.read_bytes()
        for each in folder.rglob("*")
        if each.is_symlink() or each.is_file()
    }
