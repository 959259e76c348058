"""Clients that submit, cancel, and change subpools all the while, and remember every answer.

A request that was answered is known; one whose connection was cut is unknown, and may have been
done or not.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, NamedTuple

from bough.client import Client
from bough.errors import BoughError, Unavailable
from tests.crash.jobs import Job, make_job

POOL = "team"
SUBPOOLS = ("red", "green", "blue")
#: So many wait at most, so that what was submitted also runs.
MOST_WAITING = 25
#: Of each client, between two requests.
PAUSE_S = (0.02, 0.3)
_WAITING = {"statuses": ["PENDING"]}
QUEUES = f"osmo-pool-ns-{POOL}"


class Answer(NamedTuple):
    """What became of a request."""

    #: `done`, `refused`, `unknown` where no answer came, `unsent` where no server was there.
    kind: str
    value: Any = None
    #: Of a refusal.
    status: int | None = None
    message: str = ""

    @property
    def open(self) -> bool:
        """Whether it may have been done or not: also where the database went away meanwhile."""
        return self.kind == "unknown" or self.status == 503


class Load:
    """What all clients did, and the answers they got."""

    def __init__(
        self,
        make_client: Callable[[], Client],
        port: int,
        seed: int,
        gpus: int,
        most_jobs: int | None = None,
    ) -> None:
        self._make_client = make_client
        self._port = port
        self._seed = seed
        self._gpus = gpus
        self._most_jobs = most_jobs
        self.jobs: dict[str, Job] = {}
        #: By the name of the job.
        self.submissions: dict[str, Answer] = {}
        #: By the identifier of the workflow; only where a client tried.
        self.cancellations: dict[str, Answer] = {}
        #: Sentences about what must never be seen.
        self.wrongs: list[str] = []
        #: How often the quotas were looked at, and subpools changed.
        self.looks = 0
        self.changes = 0
        self._crowded = False
        self._stop = threading.Event()

    @contextmanager
    def running(self, clients: int = 4) -> Iterator[None]:
        """Keep up the load while the block runs."""
        workers = [self._submit_all(Random(f"{self._seed}/{n}"), n) for n in range(clients)]
        targets = [*workers, self._divide(Random(f"{self._seed}/subpools")), self._look()]
        threads = [threading.Thread(target=self._drive, args=(each,)) for each in targets]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()

    @property
    def accepted(self) -> dict[str, str]:
        """Jobs that were accepted, each with the identifier of its workflow."""
        return {
            name: answer.value.name
            for name, answer in self.submissions.items()
            if answer.kind == "done"
        }

    @property
    def _enough(self) -> bool:
        return self._most_jobs is not None and len(self.jobs) >= self._most_jobs

    def _drive(self, steps: Iterator[float]) -> None:
        try:
            for pause_s in steps:
                if self._stop.wait(pause_s):
                    return
        except Exception as error:
            self.wrongs.append(f"a client failed: {error!r}")
            raise

    def _submit_all(self, random: Random, number: int) -> Iterator[float]:
        client = self._make_client()
        own: list[str] = []
        count = 0
        while True:
            yield random.uniform(*PAUSE_S)
            if own and random.random() < 0.12:
                self._cancel(client, own.pop(random.randrange(len(own))))
            elif not self._crowded and not self._enough:
                count += 1
                pool = random.choice((POOL, POOL, *(f"{POOL}--{each}" for each in SUBPOOLS)))
                job = make_job(random, f"job-{number}-{count}", pool)
                answer = self.submit(client, job)
                if answer.kind == "done":
                    own = [*own, answer.value.name][-3:]

    def submit(self, client: Client, job: Job) -> Answer:
        """Submit a job, and remember the answer."""
        self.jobs[job.name] = job
        text = job.text(self._port)
        answer = ask(lambda: client.workflows.submit(job.pool, text, priority=job.priority))
        if answer.kind == "unsent":
            del self.jobs[job.name]
            return answer
        self.submissions[job.name] = answer
        if answer.kind == "refused" and job.pool == POOL and answer.status != 503:
            self.wrongs.append(f"{job.name} was refused for no reason: {answer.message}")
        return answer

    def _cancel(self, client: Client, workflow: str) -> None:
        answer = ask(lambda: client.workflows.cancel(workflow))
        if answer.kind != "unsent":
            self.cancellations[workflow] = answer

    def _divide(self, random: Random) -> Iterator[float]:
        """Create, change and delete subpools, whatever state they are in."""
        client = self._make_client()
        while True:
            yield random.uniform(0.1, 0.6)
            name, quota = random.choice(SUBPOOLS), random.randint(1, self._gpus // 4)
            step = random.choice(("create", "create", "update", "delete"))
            if step == "create":
                answer = ask(lambda: client.subpools.create(POOL, name, quota))  # noqa: B023
            elif step == "update":
                answer = ask(lambda: client.subpools.update(POOL, name, quota))  # noqa: B023
            else:
                answer = ask(lambda: client.subpools.delete(POOL, name))  # noqa: B023
            self.changes += answer.kind == "done"

    def _look(self) -> Iterator[float]:
        client = self._make_client()
        while True:
            yield 0.2
            queues = ask(client.queues.list)
            if queues.kind == "done":
                self.looks += 1
                self.wrongs += check_quotas(queues.value, self._gpus)
            waiting = ask(lambda: client.workflows.list(limit=MOST_WAITING, query=_WAITING))
            if waiting.kind == "done":
                self._crowded = len(waiting.value.workflows) >= MOST_WAITING


def ask(request: Callable[[], Any]) -> Answer:
    """Make a request, and say what became of it. It is an answer that the server cannot answer."""
    try:
        return Answer("done", request())
    except Unavailable as error:
        if isinstance(error.__cause__, ConnectionRefusedError):
            # No server was there; give the server time to come back.
            time.sleep(0.2)
            return Answer("unsent")
        if error.__cause__ is not None:
            return Answer("unknown")
        return Answer("refused", status=error.http_status, message=str(error))
    except BoughError as error:
        return Answer("refused", status=error.http_status, message=str(error))


def check_quotas(queues: list[Any], gpus: int) -> list[str]:
    """`_shared` and the active subpools together are the pool, and nothing has less than none."""
    own = {each.name.removeprefix(QUEUES): each for each in queues}
    leaves = {name: each.quota for name, each in own.items() if name.startswith("--")}
    wrongs: list[str] = []
    if sum(leaves.values()) != gpus or own[""].quota not in (gpus, 0, None):
        wrongs.append(f"the quotas {leaves} are not {gpus} together")
    if min(leaves.values(), default=0) < 0:
        wrongs.append(f"a quota is negative: {leaves}")
    used = {name: each.used_guaranteed for name, each in own.items() if name.startswith("--")}
    if sum(used.values()) > gpus:
        wrongs.append(f"more than {gpus} GPUs are in use: {used}")
    return wrongs
