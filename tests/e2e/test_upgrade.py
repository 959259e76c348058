"""A server of an older version is replaced by today's while its tasks run: nothing is lost.

The old supervisors live on under the new server, so this is about every form in which state is
kept: the database, the files of attempts, results, data, tokens and credentials.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.local import FAIL, FINISH, Attempt, Local, find_holders, gang, job, resources, task
from tests.e2e.old_version import VERSIONS, OldHosting, OldServed, OldVersion, unpack

GPUS = 8
POOL = "team"
KEPT = "/tmp/kept"  # noqa: S108 - a path of the task
SECRET = "not to be seen"
#: Keeps what it did where the next attempt finds it.
COUNTS = """\
n=$(cat {{input:0}}/count 2>/dev/null || echo 0)
trap 'mkdir -p /tmp/kept; echo $((n + 1)) > /tmp/kept/count; echo saved; exit 1' TERM
trap 'exit 0' USR1
echo "begins at $n"
while :; do sleep 1000 & wait $!; done
"""


@pytest.fixture(scope="module", params=VERSIONS)
def version(request: pytest.FixtureRequest) -> OldVersion:
    return VERSIONS[request.param]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory, version: OldVersion) -> Path:
    return unpack(tmp_path_factory.mktemp("old"), version.commit)


@pytest.fixture(params=["sqlite", "postgresql"])
def host(request: pytest.FixtureRequest, tmp_path: Path, sources: Path) -> Iterator[OldHosting]:
    database = None
    if request.param == "postgresql":
        database = request.getfixturevalue("postgres").make(migrated=False)
    with ended(OldHosting(sources, tmp_path, GPUS, database=database)) as host:
        yield host


@contextmanager
def ended(host: OldHosting) -> Iterator[OldHosting]:
    """Whatever happens, nothing of it is left running."""
    try:
        yield host
    finally:
        host.stop()
        host.upgrade()
        try:
            server = host.start()
            server.clear()
        finally:
            host.stop()
    server.until(lambda: not find_holders(host.data), lambda: find_holders(host.data))
    assert "Traceback" not in host.errors(), host.errors()


class Site:
    """What was made with the old version, and how it looked."""

    def __init__(self, old: OldServed, version: OldVersion) -> None:
        self.old = old
        self.data = version.data
        self.names: dict[str, str] = {}
        self.make_people()
        self.make_work()
        self.seen = look(old)

    def make_people(self) -> None:
        """A pool with a subpool; a user with a role, a token and a credential."""
        old = self.old
        old.done("pool", "create", POOL, "--quota", str(GPUS))
        old.done("pool", "subpool", "create", POOL, "a", "--quota", "2")
        old.done("user", "create", "alice", "--roles", f"osmo-{POOL}-user")
        arguments = ("token", "set", "laptop", "--user", "alice", "--expires-at", "2036-12-31")
        self.token = str(old.json(*arguments)["token"])
        alice = old.as_user(self.token)
        alice.done("credential", "set", "key", "--type", "GENERIC", "--payload", f"word={SECRET}")
        old.done("config", "set", "WORKFLOW", "termination_grace=7s")

    def make_work(self) -> None:
        """Work that is finished, that runs, and that waits."""
        made = task("make", "echo made > {{output}}/file; echo wrote it")
        made["outputs"] = [{"url": f"{self.data}/run"}]
        self.send("done", {"name": "done", "resources": resources(1), "tasks": [made]})
        self.settle(COMPLETED=["done"])
        for name in ("holds", "fails", "between"):
            self.send(name, job(1, name))
        self.send("inside", job(1, "inside"), pool=f"{POOL}--a")
        self.send("gang", gang([task("one"), task("two")]))
        kept = [{"path": KEPT, "url": f"{self.data}/counts", "frequency": "1h"}]
        counts = {"inputs": [{"url": f"{self.data}/counts/kept"}], "checkpoint": kept}
        self.send("counts", job(1, "counts", COUNTS, **counts), priority="LOW")
        self.settle(RUNNING=["holds", "fails", "between", "inside", "gang", "counts"])
        first = task("first", "echo handed on > {{output}}/file")
        second = task("second", "cat {{input:0}}/file", inputs=[{"task": "first"}], resource="all")
        two = {"default": resources(1)["default"], "all": resources(5)["default"]}
        self.send("chain", {"name": "chain", "resources": two, "tasks": [first, second]})
        self.old.until(lambda: "COMPLETED" in statuses(self.query("chain")))
        self.send("waits", job(5, "waits", "echo had its turn"))

    def send(
        self, key: str, workflow: dict[str, Any], *, pool: str = POOL, priority: str = "NORMAL"
    ) -> None:
        path = self.old._folder / f"{key}.yaml"
        path.write_text(yaml.safe_dump({"workflow": workflow}, sort_keys=False))
        arguments = ("--pool", pool, "--priority", priority, str(path))
        alice = self.old.as_user(self.token)
        self.names[key] = alice.json("workflow", "submit", *arguments)["name"]

    def settle(self, **expected: list[str]) -> None:
        for status, keys in expected.items():
            for key in keys:
                self.old.until(lambda key=key, status=status: status == self.query(key)["status"])

    def query(self, key: str) -> Any:
        return self.old.json("workflow", "query", self.names[key])


def statuses(workflow: Any) -> list[str]:
    return [each["status"] for group in workflow["groups"] for each in group["tasks"]]


def look(served: Any) -> dict[str, Any]:
    """What an administrator sees of a site, as far as every version says it alike."""
    work = ask(served, "/api/workflow?all_users=true&all_pools=true&limit=100")["workflows"]
    audit = ask(served, "/api/audit?limit=100")["entries"]
    return {
        "workflows": {each["name"]: (each["status"], each["user"]) for each in work},
        "pools": sorted(ask(served, "/api/configs/pool")["pools"]),
        "users": [each["id"] for each in ask(served, "/api/auth/user")["users"]],
        "audit": [(each["number"], each["action"]) for each in audit],
    }


def ask(served: Any, path: str) -> Any:
    """What a server of any version answers."""
    host, port = served.address.removeprefix("http://").split(":")
    connection = HTTPConnection(host, int(port), timeout=60)
    connection.request("GET", path, headers={"Authorization": f"Bearer {served.token}"})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    assert 200 == answer.status, (path, text)
    return json.loads(text)


def test_a_server_of_an_old_version_is_replaced_while_its_tasks_run(
    host: OldHosting, version: OldVersion
):
    old = host.start_old()
    site = Site(old, version)
    names = site.names
    local = host.start()
    before = {key: processes_of(site, local, key) for key in ("holds", "fails", "gang", "inside")}
    (ends,) = processes_of(site, local, "between")
    host.stop(signal.SIGKILL)
    local.tell(ends, FINISH)

    host.upgrade()
    local = host.start()

    # Nothing was started again, and what ended meanwhile is known.
    local.settle(COMPLETED=[names["between"], names["done"]])
    for key, processes in before.items():
        assert processes == local.mains(names[key]), key
    assert_same(site.seen, look(local), changed=names["between"])
    assert ["[make] wrote it"] == local.log(names["done"])
    # What runs can be ended in every way, and says what it did.
    local.finish(names["holds"], names["gang"])
    local.finish(names["fails"], how=FAIL)
    assert [Attempt(0, "FAILED", 7)] == local.attempts(names["fails"])
    local.done("workflow", "cancel", names["inside"])
    local.over(names["inside"])
    assert "told to end" in local.log(names["inside"])[-1]
    assert ["COMPLETED", "COMPLETED", "FAILED", "FAILED_CANCELED"] == local.statuses(
        *(names[key] for key in ("holds", "gang", "fails", "inside"))
    )
    # What waited has its turn, with what was made before.
    local.over(names["chain"], names["waits"])
    assert ["COMPLETED", "COMPLETED"] == local.statuses(names["chain"], names["waits"])
    assert "[second] handed on" in local.log(names["chain"])
    assert_goes_on(local, names["counts"])
    assert_people(local, site)


def processes_of(site: Site, local: Local, key: str) -> list[Any]:
    """The processes of a workflow's tasks, once all of them can be signalled."""
    uuids = {each["task_uuid"] for group in site.query(key)["groups"] for each in group["tasks"]}
    return [each for each in local.mains() if each.attempt.rpartition("/")[0] in uuids]


def assert_same(before: dict[str, Any], after: dict[str, Any], changed: str) -> None:
    """All that was there is there; only one workflow has ended since."""
    work = {**before["workflows"], changed: ("COMPLETED", "alice")}
    assert work == after["workflows"]
    assert before["pools"] == after["pools"]
    assert set(before["users"]) <= set(after["users"])
    assert before["audit"] == [each for each in after["audit"] if each in before["audit"]]


def assert_goes_on(local: Local, name: str) -> None:
    """A task of an old supervisor is preempted, and its next attempt has its checkpoint."""
    assert "[main] begins at 0" in local.log(name)
    urgent = [local.run(f"{POOL}--a", 2, "HIGH"), local.run(POOL, GPUS - 2, "HIGH")]
    local.until(lambda: "[main] saved" in local.log(name, retry_id=0), lambda: local.shown(name))
    local.finish(*urgent)
    local.until(lambda: "[main retry-1] begins at 1" in local.log(name), lambda: local.shown(name))
    local.finish(name)
    assert "COMPLETED" == local.status(name)


def assert_people(local: Local, site: Site) -> None:
    """An old token allows what it allowed before, and tasks get an old credential."""
    alice = Local(local.address, site.token, local.folder, GPUS)
    read = task("main", 'echo "it says $WORD"')
    read["credentials"] = {"key": {"WORD": "word"}}
    workflow = {"name": "again", "resources": resources(1), "tasks": [read]}
    name = alice.send(POOL, "NORMAL", workflow)
    local.over(name)
    assert [f"[main] it says {SECRET}"] == local.log(name), local.shown(name)
    assert_data(local, alice, site)
    assert "7s" == local.json("config", "show", "WORKFLOW")["termination_grace"]
    assert 0 != alice.osmo("pool", "create", "other", "--quota", "1").code


def assert_data(local: Local, alice: Local, site: Site) -> None:
    """What tasks left under a URL is there."""
    url = f"{site.data}/run"
    read = job(1, "reads", "cat {{input:0}}/file", inputs=[{"url": url}])
    if url.startswith("bough://"):
        name = alice.send(POOL, "NORMAL", read)
        local.over(name)
        assert ["[main] made"] == local.log(name), local.shown(name)
        return
    # Such URLs stood for folders then, and now for the stores that they name.
    ended = alice.osmo("workflow", "submit", "--pool", POOL, alice.write(read))
    assert f"{url} needs a credential" in ended.errors
    kept = list((local.folder / "data" / "local").glob("**/s3/team/run/file"))
    assert ["made\n"] == [each.read_text() for each in kept]
