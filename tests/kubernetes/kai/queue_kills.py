"""A server that is killed in the middle of dividing pools anew; judged at each revision.

The kill comes at a write: as soon as the apiserver tells of one of those that a round needs, and
not of its last. What the cluster had when the server was gone says whether that was the middle.
"""

from __future__ import annotations

import contextlib
import random
import signal

from bough.backends.kubernetes.kai.kai_types import QUEUES
from bough.errors import BoughError
from bough.kube.client import KubeClient
from tests.kubernetes.kai.clusters import RevisionJudge
from tests.kubernetes.kai.story import DEFAULT, Story
from tests.kubernetes.served import ClusterHosting
from tests.kubernetes.waiting import wait_for

POOLS = ("one", "two")
SUBPOOLS = ("a", "b", "c", "d")
QUOTA = 100
#: The apiserver remembers only so many revisions.
_JUDGED_EVERY = 10
#: How long one watch lasts, and how many of them a round may keep waiting for its first write.
_WATCH_S, _WATCHES = 10, 30


def kill_and_judge(host: ClusterHosting, admin: KubeClient, kills: int, seed: int) -> str:
    """Kill the server so many times in mid-reconciliation; then the cluster has what it has."""
    story = Story(host, admin)
    judge = RevisionJudge(admin, story.prefix)
    division = Division(story, random.Random(seed))
    for name in POOLS:
        story.server.pool(name, QUOTA)
    wait_for(lambda: division.wanted() == division.found(), "the first tree")
    halfway = finished = 0
    while halfway < kills:
        # A round that was faster than the kill is no kill in its middle; it is judged as well.
        assert finished <= kills, f"only {halfway} kills met a round in its middle"
        division.change_until_some_writes()
        host.stop(signal.SIGKILL)
        if division.wanted() == division.found():
            finished += 1
        else:
            halfway += 1
        host.start()
        if (halfway + finished) % _JUDGED_EVERY == 0:
            assert [] == judge.faults()
    wait_for(lambda: expected(story) == story.queues(), "the tree of the server")
    assert division.wanted() == division.found()
    assert [] == judge.faults()
    wait_for(lambda: [] == story.drift()["troubles"], "the end of all troubles")
    assert [] == story.drift()["repairs"]
    return (
        f"seed {seed}: {halfway} kills in the middle of a round and {finished} at its end, "
        f"{division.changes} changes of subpools: never too much"
    )


class Division:
    """How the pools are divided, by what the server has confirmed."""

    def __init__(self, story: Story, chance: random.Random) -> None:
        self._story = story
        self._chance = chance
        self._quotas: dict[str, dict[str, int]] = {name: {} for name in POOLS}
        #: How many the server has confirmed.
        self.changes = 0

    def change_until_some_writes(self) -> None:
        """Divide a pool anew; return right after a write of what follows, but not the last."""
        version, before = self._story.admin.list(QUEUES).version, self.found()
        self._change(self._chance.choice(POOLS))
        wanted = self.wanted()
        differ = {name for name, _ in before.items() ^ wanted.items()}
        # Early in a round, as the rest of it goes on until the server is dead.
        writes = self._chance.randrange(1, max(2, len(differ) // 2))
        for _ in range(_WATCHES):
            for event in self._story.admin.watch(QUEUES, version, timeout_s=_WATCH_S):
                version = event.version
                writes -= event.object.metadata.name.startswith(self._story.prefix)
                if writes <= 0:
                    return
            if wanted == self.found():
                return
        raise AssertionError(f"no round began for {wanted}")

    def _change(self, pool: str) -> None:
        """Hardly anything is left for the shared queue."""
        now, quotas = self._quotas[pool], self._draw()
        for name in sorted(now.keys() - quotas):
            self._ask("delete", pool, name)
        # The server has the rule that its queues have: something shrinks before another grows.
        for name in sorted(quotas, key=lambda each: quotas[each] - now.get(each, 0)):
            self._ask("update" if name in now else "create", pool, name, quotas[name])

    def _draw(self) -> dict[str, int]:
        names = self._chance.sample(SUBPOOLS, self._chance.randrange(2, len(SUBPOOLS) + 1))
        left, quotas = QUOTA - self._chance.randrange(5), {}
        for name in names[1:]:
            quotas[name] = self._chance.randrange(1, left // 2)
            left -= quotas[name]
        return {names[0]: left, **quotas}

    def _ask(self, how: str, pool: str, name: str, quota: int | None = None) -> None:
        given = (pool, name) if quota is None else (pool, name, quota)
        # One that is still being deleted cannot be made again, and what is left may be too little.
        with contextlib.suppress(BoughError):
            getattr(self._story.server.client.subpools, how)(*given)
            self.changes += 1
            self._quotas[pool].pop(name, None)
            if quota is not None:
                self._quotas[pool][name] = quota

    def wanted(self) -> dict[str, float]:
        """The queues of these pools; those without quota may be there or not."""
        found: dict[str, float] = {}
        for pool, quotas in self._quotas.items():
            found |= {f"{pool}--{name}": quota for name, quota in quotas.items()}
            found |= {pool: QUOTA, f"{pool}---shared": QUOTA - sum(quotas.values())}
        return {name: quota for name, quota in found.items() if quota}

    def found(self) -> dict[str, float]:
        """The same, as the cluster has them."""
        there = self._story.queues().items()
        return {name: quota for name, quota in there if quota and not name.startswith(DEFAULT)}


def expected(story: Story) -> dict[str, float]:
    """The queues of pools as the server lists them."""
    found: dict[str, float] = {}
    with contextlib.suppress(BoughError, OSError):
        for each in story.server.json("queue", "list"):
            name = each["name"].removeprefix(story.prefix).replace("--_shared", "---shared")
            if each["name"].startswith(story.prefix):
                found[name] = -1 if each["quota"] is None else each["quota"]
    return found
