"""A command sends its token to the server that was logged in to, and to nothing else."""

from __future__ import annotations

import io
import json
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bough.api.system import ServerKeyAnswer
from bough.cli.main import run as run_command
from bough.client.ed25519 import verifies
from bough.server.server_key import ServerKey
from tests.api.served import Served

OTHER = "0" * 64


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("served") / "data") as found:
        yield found
        found.stop()


@pytest.fixture(autouse=True)
def config(tmp_path, monkeypatch) -> Path:
    for name in ("BOUGH_SERVER", "BOUGH_TOKEN", "BOUGH_SERVER_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "bough" / "login.json"


def run(*arguments: str) -> tuple[int, str]:
    """The exit code of a command, and what it printed."""
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        return run_command(list(arguments)), printed.getvalue()


def log_in(server: Served, *options: str) -> tuple[int, str]:
    return run("login", server.address, "--token", server.token, *options)


class Thief(BaseHTTPRequestHandler):
    """Writes down every token that it is sent, and answers as a server would."""

    stolen: list[str]

    def do_GET(self) -> None:
        sent = self.headers.get("authorization")
        if sent is not None:
            self.stolen.append(sent)
        status, body = self.answer()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer(self) -> tuple[int, bytes]:
        return 404, b"{}"

    def log_message(self, *args: object) -> None:
        pass


class Away(Thief):
    """Stands in for a server that does not run."""

    def answer(self) -> tuple[int, bytes]:
        return 503, b"{}"


class Pretender(Thief):
    """Proves to have a key of its own."""

    protocol_version = "HTTP/1.1"
    key = ServerKey.new()

    def answer(self) -> tuple[int, bytes]:
        challenge = self.path.rpartition("=")[2]
        address = "{}:{}".format(*self.connection.getsockname())
        proof = self.key.prove(challenge, address)
        return 200, json.dumps(
            {each: getattr(proof, each) for each in proof.__struct_fields__}
        ).encode()


class Relay(Thief):
    """Passes the question on to the real server."""

    protocol_version = "HTTP/1.1"
    target = ""

    def answer(self) -> tuple[int, bytes]:
        answer = httpx.get(self.target + self.path)
        return answer.status_code, answer.content


@contextmanager
def listening(kind: type[Thief]) -> Iterator[str]:
    kind.stolen = []
    thief = HTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=thief.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{thief.server_port}"
    finally:
        thief.shutdown()
        thread.join()
        thief.server_close()


def test_the_key_of_a_server_is_its_own_and_stays(server):
    private, public = server.data / "server-key", server.data / "server-key.pub"
    assert 0o600 == stat.S_IMODE(os.stat(private).st_mode)
    key = public.read_text().strip()
    challenge = "ab" * 32
    proof = httpx.get(f"{server.address}/api/server-key?challenge={challenge}").json()
    assert key == proof["key"]
    assert server.address == f"http://{proof['address']}"
    message = ServerKeyAnswer.signed_text(challenge, proof["address"])
    assert verifies(bytes.fromhex(key), message, bytes.fromhex(proof["signature"]))
    assert key == ServerKey.of(server.data).public
    for wrong in ("", "ab", "x" * 64, "ab" * 65):
        answer = httpx.get(f"{server.address}/api/server-key?challenge={wrong}")
        assert (400, True) == (answer.status_code, "challenge must be" in answer.json()["message"])


def test_a_login_remembers_the_server_and_says_its_key(server, config):
    code, output = log_in(server, "--format-type", "json")
    assert 0 == code, output
    key = (server.data / "server-key.pub").read_text().strip()
    assert key == json.loads(output)["server_key"]
    stored = json.loads(config.read_text())
    assert (key, True) == (stored["server_key"], stored["direct"])
    assert 0 == run("pool", "list")[0]
    assert 0 == run("pool", "create", "made", "--quota", "0")[0]


def move(config: Path, address: str) -> None:
    """Another program listens where the server was."""
    stored = json.loads(config.read_text())
    config.write_text(json.dumps(stored | {"server": address}))


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Thief, "it cannot prove that it is the server"),
        (Pretender, f"its key is {Pretender.key.public}"),
        (Relay, "it passes on what it is asked"),
    ],
    # A key that is new each time must not be in the name of a test.
    ids=["thief", "pretender", "relay"],
)
def test_what_takes_the_place_of_the_server_is_sent_no_token(server, config, kind, reason):
    assert 0 == log_in(server)[0]
    Relay.target = server.address
    with listening(kind) as address:
        move(config, address)
        for command in (("pool", "list"), ("pool", "create", "x", "--quota", "1")):
            code, output = run(*command)
            assert 10 == code, output
            assert reason in output
            assert f"bough login {address} --new-server" in " ".join(output.split())
        # Nor is it when one logs in again.
        code, output = run("login", address, "--token", "secret")
        assert (10, True) == (code, reason in output)
    assert [] == kind.stolen


def test_a_server_that_does_not_run_is_called_away_and_not_another_one(server, config):
    """As what keeps its port open through a restart answers."""
    assert 0 == log_in(server)[0]
    with listening(Away) as address:
        move(config, address)
        code, output = run("pool", "list")
    assert 10 == code
    assert f"The server at {address} does not answer at the moment" in " ".join(output.split())
    assert "Something else answers" not in output
    assert [] == Away.stolen


def test_a_login_without_a_key_goes_on_working_and_remembers_it_at_the_next_chance(server, config):
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps({"server": server.address, "token": server.token, "user": None}))
    assert 0 == run("pool", "list")[0]
    stored = json.loads(config.read_text())
    assert (server.data / "server-key.pub").read_text().strip() == stored["server_key"]
    assert server.token == stored["token"]


def test_a_server_without_a_key_is_still_asked_by_those_who_knew_none(config):
    with listening(Thief) as address:
        config.parent.mkdir(parents=True)
        config.write_text(json.dumps({"server": address, "token": "secret", "user": None}))
        run("pool", "list")
        assert "server_key" not in json.loads(config.read_text())
    assert ["Bearer secret"] == Thief.stolen


def test_a_key_can_be_told_at_the_login_and_by_the_environment(server, config, monkeypatch):
    key = (server.data / "server-key.pub").read_text().strip()
    code, output = log_in(server, "--server-key", OTHER)
    assert (10, True) == (code, f"its key is {key}" in output)
    assert not config.exists()
    assert 2 == log_in(server, "--server-key", "short")[0]
    assert 0 == log_in(server, "--server-key", key)[0]
    monkeypatch.setenv("BOUGH_SERVER", server.address)
    monkeypatch.setenv("BOUGH_TOKEN", server.token)
    for told, expected in ((key, 0), (OTHER, 10), ("short", 2)):
        monkeypatch.setenv("BOUGH_SERVER_KEY", told)
        assert expected == run("pool", "list")[0]


def test_a_server_that_was_set_up_anew_is_known_again_after_a_login_that_says_so(server, config):
    assert 0 == log_in(server)[0]
    stored = json.loads(config.read_text())
    config.write_text(json.dumps(stored | {"server_key": OTHER}))
    assert 10 == log_in(server)[0]
    assert 0 == log_in(server, "--new-server")[0]
    assert 0 == run("pool", "list")[0]


def test_signatures_are_checked_as_the_library_does():
    for number in range(8):
        private = Ed25519PrivateKey.generate()
        key, message = private.public_key().public_bytes_raw(), b"m" * number
        signature = private.sign(message)
        assert verifies(key, message, signature)
        assert not verifies(key, message + b"x", signature)
        for place in range(0, 64, 9):
            broken = bytearray(signature)
            broken[place] ^= 1 << (number % 8)
            assert not verifies(key, message, bytes(broken))
    # The same signature written with a larger number is none.
    order = 2**252 + 27742317777372353535851937790883648493
    larger = int.from_bytes(signature[32:], "little") + order
    assert not verifies(key, message, signature[:32] + larger.to_bytes(32, "little"))
    assert not verifies(key[:31], message, signature)
    assert not verifies(b"\xff" * 32, message, signature)


def test_the_first_vectors_of_rfc_8032_are_verified():
    for key, message, signature in (
        (
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "",
            (
                "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e3970"
                "1cf9b46bd25bf5f0595bbe24655141438e7a100b"
            ),
        ),
        (
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "72",
            (
                "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613"
                "d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
            ),
        ),
    ):
        assert verifies(*map(bytes.fromhex, (key, message, signature)))
