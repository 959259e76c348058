"""A server that is killed again and again while pools are divided anew; judged at each revision."""

from __future__ import annotations

import contextlib
import random
import signal
import threading
import time

from bough.errors import BoughError
from bough.kube.client import KubeClient
from tests.kubernetes.kai.clusters import RevisionJudge
from tests.kubernetes.kai.story import Story
from tests.kubernetes.served import ClusterHosting
from tests.kubernetes.waiting import wait_for

POOLS = ("one", "two", "three")
SUBPOOLS = ("a", "b", "c", "d")


def kill_and_judge(host: ClusterHosting, admin: KubeClient, kills: int, seed: int) -> str:
    """Kill the server so many times; at the end the cluster has what the server has. Figures."""
    story = Story(host, admin)
    judge = RevisionJudge(admin, story.prefix)
    chance = random.Random(seed)
    for name in POOLS:
        story.server.pool(name, 100)
    enough = threading.Event()
    changes = [0]

    def divide() -> None:
        pools = story.server.client.subpools
        while not enough.is_set():
            pool, sub = chance.choice(POOLS), chance.choice(SUBPOOLS)
            try:
                how = chance.choice([pools.create, pools.update, pools.update, None])
                if how is None:
                    pools.delete(pool, sub)
                else:
                    how(pool, sub, chance.randrange(60))
                changes[0] += 1
            except (BoughError, OSError):
                time.sleep(0.02)

    feeding = threading.Thread(target=divide, daemon=True)
    feeding.start()
    try:
        for _ in range(kills):
            # In the middle of what follows from some changes.
            some = changes[0] + chance.randrange(1, 5)
            wait_for(lambda some=some: changes[0] >= some, "changes of subpools")
            time.sleep(chance.random() / 10)
            host.stop(signal.SIGKILL)
            host.start()
    finally:
        enough.set()
        feeding.join(60)
    assert not feeding.is_alive()
    wait_for(lambda: expected(story) == story.queues(), "the tree of the server")
    assert [] == judge.faults()
    assert [] == story.drift()["troubles"]
    return f"seed {seed}: {kills} kills, {changes[0]} changes of subpools: never too much"


def expected(story: Story) -> dict[str, float]:
    """The queues of pools as the server lists them."""
    found: dict[str, float] = {}
    with contextlib.suppress(BoughError, OSError):
        for each in story.server.json("queue", "list"):
            name = each["name"].removeprefix(story.prefix).replace("--_shared", "---shared")
            if each["name"].startswith(story.prefix):
                found[name] = -1 if each["quota"] is None else each["quota"]
    return found
