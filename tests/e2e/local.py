"""A server whose tasks are processes of this machine: started, stopped, and left clean.

What a test sees of a task is what the task did: its processes, its log, the files it left. A test
that serves with this leaves no process behind.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from bough import Client
from bough.errors import Conflict, Invalid, NotFound
from tests.e2e.served import OSMO, PATIENCE_S, PROGRAM, Served

ALIVE = ("PENDING", "RUNNING", "WAITING")
#: Says which GPUs it has and holds them: until it is told to finish or to fail, or given notice.
#: What the shell says of its children would come in between.
HOLD = """\
trap 'echo told to end; exit 0' TERM
trap 'echo finished; exit 0' USR1
trap 'echo failed; exit 7' USR2
exec 2>/dev/null
echo "holds GPUs $CUDA_VISIBLE_DEVICES."
while :; do sleep 1000 & wait $!; done
"""
FINISH, FAIL = signal.SIGUSR1, signal.SIGUSR2
_VARIABLE = b"BOUGH_ATTEMPT="


class Process(NamedTuple):
    """A process of a task."""

    pid: int
    parent: int
    attempt: str
    environment: dict[str, str]

    @property
    def gpus(self) -> tuple[int, ...]:
        """The GPUs that it was given."""
        return tuple(map(int, filter(None, self.environment["CUDA_VISIBLE_DEVICES"].split(","))))


class Attempt(NamedTuple):
    """What is kept of one attempt of a task."""

    retry: int
    status: str
    code: int | None


class Local(Served):
    """A running server with GPUs that are only offered, and its first administrator."""

    def __init__(self, address: str, token: str, folder: Path, gpus: int = 0) -> None:
        super().__init__(address, token, folder)
        self.folder = folder
        self.client = Client(address, token)
        self.environment = self._environment
        self.gpus = gpus

    # What is asked for

    def cluster(self, gpus: int, **quotas: int) -> None:
        """Pools with these quotas, and so many GPUs for them: others hold the rest."""
        rest = self.gpus - gpus
        if rest:
            self.pool("elsewhere", rest)
            self.run("elsewhere", rest, "HIGH", name="elsewhere")
        for name, quota in quotas.items():
            self.pool(name, quota)

    def pool(self, name: str, quota: int, **options: int) -> None:
        """Make a pool."""
        more = [f"--{option.replace('_', '-')}={value}" for option, value in options.items()]
        self.done("pool", "create", name, "--quota", str(quota), *more)

    def write(self, workflow: dict[str, Any], name: str = "spec.yaml") -> str:
        """A file with a workflow."""
        path = self.folder / name
        path.write_text(yaml.safe_dump({"workflow": workflow}, sort_keys=False))
        return str(path)

    def submit(self, pool: str, gpus: int, priority: str, **fields: Any) -> str:
        """Submit a workflow of one task that holds GPUs, or does what the fields say; its ID."""
        return self.send(pool, priority, job(gpus, **fields))

    def send(self, pool: str, priority: str, workflow: dict[str, Any], *options: str) -> str:
        """Submit a workflow; its ID."""
        path = self.write(workflow)
        arguments = ("--pool", pool, "--priority", priority, *options, path)
        return self.json("workflow", "submit", *arguments)["name"]

    def run(self, pool: str, gpus: int, priority: str, **fields: Any) -> str:
        """Submit such a workflow, and wait until its process does what it is there for; its ID."""
        name = self.submit(pool, gpus, priority, **fields)
        self.settle(RUNNING=[name])
        self.until(lambda: bool(self.ready(name)))
        return name

    def finish(self, *names: str, how: signal.Signals = FINISH) -> None:
        """Let the tasks of workflows end by themselves, and wait for the workflows to finish."""
        for name in names:
            self.signal(name, how)
        self.over(*names)

    def signal(self, name: str, how: signal.Signals = FINISH) -> None:
        """Let the tasks of a workflow that run end by themselves."""
        self.until(lambda: bool(self.ready(name)), lambda: self.shown(name))
        for each in self.ready(name):
            self.tell(each, how)

    def tell(self, process: Process, how: signal.Signals = FINISH) -> None:
        """Send a signal to one process, if it is still there."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, how)

    def command(self, *arguments: str) -> list[str]:
        """A command to be run by the test that wants to see it run."""
        return [str(OSMO), *arguments]

    # What is seen

    def workflow(self, name: str) -> Any:
        """A workflow with all attempts of its tasks."""
        return msgspec.to_builtins(self.client.workflows.get(name, every_attempt=True))

    def status(self, workflow: str) -> str:
        return self.client.workflows.get(workflow).status

    def statuses(self, *names: str) -> list[str]:
        return [self.status(name) for name in names]

    def message(self, name: str) -> str:
        """Why a workflow failed."""
        return self.workflow(name)["failure_message"] or ""

    def tasks(self, name: str) -> dict[str, list[Attempt]]:
        """The attempts of each task, the first one first."""
        found: dict[str, list[Attempt]] = {}
        for group in self.workflow(name)["groups"]:
            for task in sorted(group["tasks"], key=lambda each: each["retry_id"]):
                attempt = Attempt(task["retry_id"], task["status"], task["exit_code"])
                found.setdefault(task["name"], []).append(attempt)
        return found

    def attempts(self, name: str) -> list[Attempt]:
        """The attempts of a workflow with one task."""
        (attempts,) = self.tasks(name).values()
        return attempts

    def log(self, name: str, **asked: Any) -> list[str]:
        """What the tasks of a workflow wrote until now: `[task] text`, without the time."""
        lines = self.client._transport.lines(
            f"/api/workflow/{name}/logs", {"follow": False, **asked}
        )
        return [line.rstrip("\n").split(" ", 2)[2] for line in lines]

    def endings(self, name: str) -> list[str]:
        """How the tasks of a workflow that hold GPUs ended, as they say it themselves."""
        said = (line.partition("] ")[2] for line in self.log(name))
        return [each for each in said if each in ("told to end", "finished", "failed")]

    def processes(self, *names: str) -> list[Process]:
        """The processes of all tasks, or of those of some workflows, by their number."""
        wanted = {attempt for name in names for attempt in self._attempts(name)}
        if not names:
            kept = (self.folder / "data" / "local" / "attempts").glob("*")
            wanted = {"/".join(each.name.rsplit("-", 1)) for each in kept}
        return [each for each in find_processes() if each.attempt in wanted]

    def mains(self, *names: str) -> list[Process]:
        """Of each task that runs, the process that it was started as."""
        found = self.processes(*names)
        numbers = {(each.pid, each.attempt) for each in found}
        return [each for each in found if (each.parent, each.attempt) not in numbers]

    def ready(self, name: str) -> list[Process]:
        """The tasks of a workflow that can be told to finish."""
        return [each for each in self.mains(name) if _catches(each.pid, FINISH)]

    def waits(self, *names: str) -> bool:
        """Whether the scheduler has looked at workflows, and left all of them where they are."""
        return all(
            found.status == "PENDING" and all(group.wait_reason for group in found.groups)
            for found in map(self.client.workflows.get, names)
        )

    # Waiting

    def until(
        self, condition: Callable[[], bool], shown: Callable[[], object] | None = None
    ) -> None:
        """Wait for a condition that must come true."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, shown() if shown else "it did not come about"
            time.sleep(0.1)

    def settle(self, **expected: Sequence[str]) -> None:
        """Wait until workflows have statuses: `RUNNING=[first, second], PENDING=[third]`."""
        wanted = {name: status for status, names in expected.items() for name in names}
        self.until(
            lambda: list(wanted.values()) == self.statuses(*wanted),
            lambda: (wanted, self.shown(*wanted)),
        )

    def left_waiting(self, *names: str) -> None:
        """Wait until the scheduler has decided that these wait."""
        self.until(lambda: self.waits(*names), lambda: self.shown(*names))

    def over(self, *names: str) -> None:
        """Wait until workflows have finished, and nothing of them runs."""
        self.until(
            lambda: not any(status in ALIVE for status in self.statuses(*names)),
            lambda: self.shown(*names),
        )
        self.until(lambda: not self.processes(*names), lambda: self.processes(*names))

    def shown(self, *names: str) -> object:
        """What a person would look at if a condition did not come true."""
        return {
            name: (found["status"], found["failure_message"], self.tasks(name), self.log(name))
            for name in names
            for found in (self.workflow(name),)
        }

    # Ending

    def clear(self) -> None:
        """End all workflows at once, wait until nothing runs, and take the quota of all pools."""
        told: set[str] = set()
        while names := [name for name in self.alive() if name not in told]:
            for name in names:
                with contextlib.suppress(NotFound, Conflict, Invalid):
                    self.client.workflows.cancel(name, force=True)
            told.update(names)
        self.until(lambda: not self.alive(), lambda: self.shown(*self.alive()))
        self.until(lambda: not self.processes(), self.processes)
        for name in self.client.pools.list():
            if name != "default" and self.osmo("pool", "delete", name).code:
                # It has subpools, and their history is kept.
                self.osmo("pool", "update", name, "--quota", "0")

    def alive(self) -> list[str]:
        """The workflows that have not finished."""
        page = self.client.workflows.list(limit=1_000, query={"statuses": list(ALIVE)})
        return [each.name for each in page.workflows]

    def _attempts(self, name: str) -> Iterator[str]:
        for group in self.workflow(name)["groups"]:
            for task in group["tasks"]:
                yield f"{task['task_uuid']}/{task['retry_id']}"


def job(gpus: int, name: str = "job", script: str = HOLD, **fields: Any) -> dict[str, Any]:
    """A workflow of one task that runs a shell script."""
    return {
        "name": name,
        "resources": resources(gpus),
        "tasks": [task("main", script, **fields)],
    }


def gang(
    tasks: Sequence[dict[str, Any]], name: str = "gang", gpus: int = 1, **fields: Any
) -> dict[str, Any]:
    """A workflow of one group; its first task is the lead."""
    members = [{**each, "lead": number == 0} for number, each in enumerate(tasks)]
    group = {"name": "group", **fields, "tasks": members}
    return {"name": name, "resources": resources(gpus), "groups": [group]}


def task(name: str, script: str = HOLD, **fields: Any) -> dict[str, Any]:
    """A task that runs a shell script."""
    return {"name": name, "image": "none", "command": ["sh", "-c"], "args": [script], **fields}


def resources(gpus: int) -> dict[str, Any]:
    """Enough of everything else, so that GPUs alone decide."""
    return {"default": {"gpu": gpus, "cpu": 0, "memory": "256Mi", "storage": "0Gi"}}


def find_processes() -> list[Process]:
    """All processes of this machine that belong to a task, by their number."""
    found: list[Process] = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit() and (process := _read_process(each)) is not None:
            found.append(process)
    return sorted(found)


def find_holders(folder: Path) -> list[int]:
    """The processes of this machine that have something in a folder open, or are in it."""
    start = str(folder.resolve()) + "/"
    found: list[int] = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            with contextlib.suppress(OSError):
                places = [each / "cwd", *(each / "fd").iterdir()]
                if any(f"{os.readlink(place)}/".startswith(start) for place in places):
                    found.append(int(each.name))
    return found


class Hosting:
    """A server's process, which can be ended and started again on the same data."""

    PROGRAM: tuple[str, ...] = (str(PROGRAM),)

    def __init__(self, folder: Path, gpus: int, *options: str, database: str | None = None) -> None:
        self.folder = folder
        self.data = folder / "data"
        #: What it printed as soon as it was ready.
        self.greeting = ""
        self._port = "0"
        self._gpus = gpus or 0
        self._options = ("--namespace", "ns", *options)
        if gpus is not None:
            self._options += ("--gpus", str(gpus))
        #: Where the database is, for commands on the server's machine.
        self.database_options = ["--data", str(self.data)]
        if database:
            self.database_options += ["--database", database]
            self._options += ("--database", database)
        self._process: subprocess.Popen[str] | None = None
        self._program = self.PROGRAM
        #: `None`: that of this process.
        self._environment: dict[str, str] | None = None

    def start(self) -> Local:
        """Start, and wait until it answers; if it runs already, that is it."""
        if self._process is None:
            command = [*self._program, "serve", "--port", self._port, "--data", self.data]
            with (self.folder / "log").open("a") as log:
                self._process = subprocess.Popen(
                    [*command, "--backend", "local", *self._options],
                    stdout=subprocess.PIPE,
                    stderr=log,
                    stdin=subprocess.DEVNULL,
                    text=True,
                    start_new_session=True,
                    env=self._environment,
                )
            assert self._process.stdout is not None
            self.greeting = self._process.stdout.readline()
            if not self.greeting.startswith("Bough listens on "):
                raise AssertionError(self.greeting + self.stop() + self.errors())
            self._port = self.greeting.strip().rpartition(":")[2]
        address = self.greeting.split()[-1]
        token = (self.data / "admin-token").read_text().strip()
        return Local(address, token, self.folder, self._gpus)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> str:
        """End the server, and nothing else; what it printed after its greeting."""
        if self._process is None:
            return ""
        process, self._process = self._process, None
        process.send_signal(how)
        process.wait(PATIENCE_S)
        assert process.stdout is not None
        with process.stdout as output:
            return output.read()

    def errors(self) -> str:
        """What it wrote to standard error, ever."""
        return (self.folder / "log").read_text()


@contextmanager
def hosting(
    folder: Path, gpus: int | None, *options: str, database: str | None = None
) -> Iterator[Hosting]:
    """A server that is not started yet. Whatever happens, nothing of it is left running."""
    host = Hosting(folder, gpus, *options, database=database)
    try:
        yield host
    finally:
        try:
            server = host.start()
            server.clear()
        finally:
            host.stop()
    assert [] == server.processes()
    # The supervisors have nothing more to do.
    server.until(lambda: not find_holders(host.data), lambda: find_holders(host.data))
    assert "Traceback" not in host.errors(), host.errors()


@contextmanager
def serving_locally(folder: Path, gpus: int, database: str | None = None) -> Iterator[Local]:
    """A server that offers GPUs, until the block ends."""
    with hosting(folder, gpus, database=database) as host:
        yield host.start()


def _read_process(folder: Path) -> Process | None:
    """A process of a task; `None`: it is none, or it is gone."""
    try:
        content = (folder / "environ").read_bytes()
        if _VARIABLE not in content:
            return None
        state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return None
    entries = (entry.partition("=") for entry in content.decode(errors="replace").split("\0"))
    environment = {name: value for name, _, value in entries}
    attempt = environment.get("BOUGH_ATTEMPT")
    if state == "Z" or attempt is None:
        return None
    return Process(int(folder.name), int(parent), attempt, environment)


def _catches(pid: int, number: signal.Signals) -> bool:
    """Whether a process has something to do when it gets a signal."""
    try:
        status = (Path("/proc") / str(pid) / "status").read_text()
    except OSError:
        return False
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught, 16) >> (number - 1) & 1)
