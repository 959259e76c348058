"""Several processes answer requests as one: what one of them does, all of them know."""

from __future__ import annotations

import os
import secrets
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from bough.api.system import ServerKeyAnswer
from bough.client.ed25519 import verifies
from bough.server.concurrency_limits import STREAMS
from tests.api.served import Served
from tests.crash.crashes import scene, seed_of_this_run
from tests.crash.postgres import durable_postgres
from tests.crash.server import is_alive, until
from tests.crash.takeovers import frozen
from tests.crash.workers import crash_workers
from tests.e2e.at_workers import Answer, ask, begin_stream, connected, workers_of
from tests.e2e.local import Hosting, hosting
from tests.e2e.served import PATIENCE_S
from tests.e2e.sessions import Forwarded, begin, run, started

WORKERS = 2
#: On each database.
KILLS = 4
#: So many workflows at most, while they are killed.
JOBS = 30
BUDGET_S = 300
SPEC = "workflow: {name: job, tasks: [{name: main, image: i, command: [sleep, '1']}]}"

LONG = SPEC.replace("'1'", "infinity")


class Site:
    """A server with several workers, each of which can be asked."""

    def __init__(self, server: Served) -> None:
        self.server = server
        self.pid = server.process.pid

    @property
    def workers(self) -> list[int]:
        return workers_of(self.pid)

    def at(self, worker: int, method: str, path: str, body: object = None, **more: str) -> Answer:
        token = more.get("token", self.server.token)
        return ask(self.server.address, self.pid, worker, method, path, token=token, body=body)

    def done(self, worker: int, method: str, path: str, body: object = None) -> object:
        """A request that must succeed."""
        answer = self.at(worker, method, path, body)
        assert answer.status in (200, 201), answer
        return answer.body

    def submit(self, worker: int, pool: str = "default", spec: str = SPEC, **more: str) -> Answer:
        return self.at(worker, "POST", f"/api/pool/{pool}/workflow", {"file": spec}, **more)

    def user(self, name: str, *roles: str) -> str:
        """A new user; a token."""
        self.done(self.workers[0], "POST", "/api/auth/user", {"id": name, "roles": list(roles)})
        expires = "expires_at=2099-01-01"
        path = f"/api/auth/user/{name}/access_token/t?{expires}"
        return str(self.done(self.workers[0], "POST", path))

    def stop(self) -> None:
        """It ends in order, with all workers and their streams."""
        with ExitStack() as stack:
            streams: list[socket.socket] = []
            workers = self.workers
            for each in workers:
                opened = stack.enter_context(connected(self.server.address, self.pid, each))
                opened.settimeout(PATIENCE_S)
                assert 200 == begin_stream(opened, "/api/events", self.server.token)
                streams.append(opened)
            assert 0 == self.server.stop()
            assert not any(map(is_alive, workers))
            # Each has the last part of a body that is sent in parts.
            assert all(_rest(each).endswith(b"0\r\n\r\n") for each in streams)
        assert "Traceback" not in self.server.log

    def kill(self) -> None:
        """No worker is left when it is killed, not even one that cannot be told."""
        workers = self.workers
        assert WORKERS == len(workers)
        os.kill(workers[0], signal.SIGSTOP)
        assert -signal.SIGKILL == self.server.stop(signal.SIGKILL)
        until(lambda: not any(map(is_alive, workers)), "the workers end with their server")
        assert "Traceback" not in self.server.log

    def all_work(self) -> bool:
        if len(self.workers) != WORKERS:
            return False
        return self.server.get("/health")["status"] == "ok"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    options = ["--workers", str(WORKERS), "--gpus", "8", "--namespace", "ns"]
    if request.param == "postgresql":
        database = request.getfixturevalue("postgres").make(migrated=False)
        options += ["--database", database]
    with Served(tmp_path_factory.mktemp("workers") / "data", *options) as server:
        found = Site(server)
        yield found
        end = found.kill if request.param == "sqlite" else found.stop
        end()


#: What no database has a part in is tested with one of them.
whatever_database = pytest.mark.parametrize("site", ["sqlite"], indirect=True)


def test_a_token_that_is_revoked_at_one_worker_is_worth_nothing_at_the_others(site: Site):
    token = site.user("ann")
    first, *others = site.workers
    # So each of them has seen it, and has kept what it allows.
    assert [200] * WORKERS == [
        site.at(each, "GET", "/api/pool", token=token).status for each in site.workers
    ]
    site.done(first, "DELETE", "/api/auth/user/ann/access_token/t")
    assert [401] == [site.at(each, "GET", "/api/pool", token=token).status for each in others]


def test_a_role_that_is_taken_at_one_worker_allows_nothing_at_the_others(site: Site):
    token = site.user("bob", "osmo-default-user")
    first, *others = site.workers
    assert [200] * WORKERS == [site.submit(each, token=token).status for each in site.workers]
    site.done(first, "DELETE", "/api/auth/user/bob/roles/osmo-default-user")
    assert [403] == [site.submit(each, token=token).status for each in others]


def test_a_pool_that_is_deleted_at_one_worker_takes_no_work_at_the_others(site: Site):
    first, *others = site.workers
    gpu = {"guarantee": 0, "maximum": -1, "weight": 1}
    body = {"name": "brief", "configs": {"resources": {"gpu": gpu}}}
    site.done(first, "POST", "/api/configs/pool", body)
    names = [site.submit(each, "brief") for each in site.workers]
    assert [200] * WORKERS == [each.status for each in names], names
    for each in names:
        site.done(others[0], "POST", f"/api/workflow/{each.body['name']}/cancel?force=true")
    site.server.until(
        lambda: site.at(first, "DELETE", "/api/configs/pool/brief").status in (200, 404)
    )
    refused = [site.submit(each, "brief") for each in others]
    assert [404] == [each.status for each in refused], refused


def test_a_stream_of_one_worker_has_what_is_written_by_another(site: Site):
    first, second = site.workers
    with connected(site.server.address, site.pid, first) as stream:
        stream.settimeout(PATIENCE_S)
        assert 200 == begin_stream(stream, "/api/events", site.server.token)
        name = site.submit(second).body["name"]
        seen = b""
        while name.encode() not in seen:
            part = stream.recv(65_536)
            assert part, seen
            seen += part


@whatever_database
def test_every_worker_proves_to_be_the_same_server(site: Site):
    public = (site.server.data / "server-key.pub").read_text().strip()
    for each in site.workers:
        challenge = secrets.token_hex(32)
        body = site.at(each, "GET", f"/api/server-key?challenge={challenge}").body
        assert public == body["key"]
        signed = ServerKeyAnswer.signed_text(challenge, body["address"])
        assert verifies(bytes.fromhex(public), signed, bytes.fromhex(body["signature"]))


@whatever_database
def test_figures_are_those_of_the_whole_server_whichever_worker_is_asked(site: Site):
    seen: list[int] = []
    for _ in range(3):
        for each in site.workers:
            text = site.at(each, "GET", "/metrics").body
            figures = dict(
                line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")
            )
            assert str(WORKERS) == figures["bough_workers"]
            seen.append(int(figures["bough_cycles_total"]))
    # A counter that goes back would be one that begins anew.
    assert sorted(seen) == seen


@whatever_database
def test_as_many_streams_are_open_as_one_user_can_have_and_not_one_more(site: Site):
    token = site.user("many", "osmo-default-user")
    name = site.submit(site.workers[0], spec=LONG).body["name"]
    with ExitStack() as stack:

        def open_stream(_: int) -> tuple[int, socket.socket]:
            found = socket.create_connection(_end_of(site.server.address), PATIENCE_S)
            stack.enter_context(found)
            return begin_stream(found, f"/api/workflow/{name}/events", token), found

        with ThreadPoolExecutor(16) as clients:
            opened = list(clients.map(open_stream, range(STREAMS + 20)))
        assert STREAMS == sum(status == 200 for status, _ in opened)
        assert 20 == sum(status == 429 for status, _ in opened)
        # What a worker that is killed had is free again, and no more than that.
        victim = site.workers[0]
        os.kill(victim, signal.SIGKILL)
        site.server.until(lambda: not Path(f"/proc/{victim}").exists())
        lost = sum(_is_closed(each) for status, each in opened if status == 200)
        assert 0 < lost < STREAMS
        # Others answer meanwhile, and say so.
        said = site.server.until(lambda: site.server.get("/health")["reasons"])
        assert "was ended by signal 9 (SIGKILL), and is being started again." in said[0]
        assert said[0].startswith("Worker ")
        site.server.until(site.all_work)
        assert "bough_worker_restarts_total 1" in site.server.ask("GET", "/metrics").text
        with ThreadPoolExecutor(16) as clients:
            again = list(clients.map(open_stream, range(lost + 5)))
        assert (lost, 5) == tuple(
            sum(status == wanted for status, _ in again) for wanted in (200, 429)
        )


@whatever_database
def test_a_worker_that_is_frozen_is_replaced_and_what_it_did_not_take_is_answered(site: Site):
    before = site.workers
    with frozen(before[0]):
        # Some of these are given to the frozen one, which takes none; others answer them later.
        with ThreadPoolExecutor(6) as clients:
            asked = list(clients.map(lambda _: site.server.ask("GET", "/api/version"), range(6)))
        assert [200] * 6 == [each.status_code for each in asked]
        site.server.until(lambda: not is_alive(before[0]))
    site.server.until(site.all_work)
    assert "said nothing for 15 s and was killed" in site.server.log


@whatever_database
def test_a_worker_that_is_told_to_end_is_replaced(site: Site):
    before = site.workers
    os.kill(before[0], signal.SIGTERM)
    site.server.until(lambda: before[0] not in site.workers)
    site.server.until(site.all_work)
    assert "ended with exit code 0; restarting it" in site.server.log


@whatever_database
def test_lines_of_the_log_name_the_worker(site: Site):
    for each in site.workers:
        site.at(each, "GET", "/api/version")
    for number in range(1, WORKERS + 1):
        assert f"bough.access [worker {number}] 127.0.0.1" in site.server.log


# With tasks that are processes


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosting]:
    with hosting(tmp_path_factory.mktemp("sessions"), 4, "--workers", str(WORKERS)) as found:
        found.start().pool("p", 4)
        yield found


def test_sessions_meet_whichever_workers_their_connections_come_to(hosted: Hosting):
    host = hosted.start()
    name = begin(host)
    for _ in range(WORKERS + 1):
        assert (0, b"hello\n", b"") == run(host, "exec", name, "main", "--", "echo", "hello")
    with started(host, "port-forward", name, "main", "0:7001") as process:
        echo = Forwarded(process)
        with ExitStack() as stack:
            # Each of them is another connection to the server, announced by the first.
            opened = [stack.enter_context(echo.connect()) for _ in range(2 * WORKERS)]
            for number, each in enumerate(opened):
                each.sendall(b"%d" % number)
            assert [b"%d" % number for number in range(len(opened))] == [
                each.recv(100) for each in opened
            ]
    # A key is asked for at one worker and used at another; so are further connections.
    lines = hosted.errors().splitlines()
    for path in ("/exec/", "GET /api/router/portforward/"):
        parts = [line for line in lines if "bough.access" in line and path in line]
        assert len({line.partition("[worker ")[2][:1] for line in parts}) > 1, parts


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[str | None]:
    if request.param == "sqlite":
        yield None
        return
    with durable_postgres() as postgres:
        yield postgres.url


def test_workers_that_are_killed_under_load_lose_nothing(database: str | None, tmp_path: Path):
    options = ("--workers", str(WORKERS))
    with scene(tmp_path, seed_of_this_run(), database, most_jobs=JOBS, options=options) as now:
        pid, loop = now.server.pid, now.server.loop
        assert KILLS <= crash_workers(now, WORKERS, KILLS, BUDGET_S)
        assert (pid, loop) == (now.server.pid, now.server.loop)
        now.settle()


def _end_of(address: str) -> tuple[str, int]:
    host, _, port = address.removeprefix("http://").rpartition(":")
    return host, int(port)


def _is_closed(connection: socket.socket) -> bool:
    connection.settimeout(0.0)
    try:
        while connection.recv(65_536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def _rest(connection: socket.socket) -> bytes:
    found = b""
    try:
        while part := connection.recv(65_536):
            found += part
    except ConnectionError:
        pass
    return found
