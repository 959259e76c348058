"""Random histories of pools and subpools on a real apiserver, judged at each revision."""

from __future__ import annotations

import random
from typing import Any

from bough.backends.kubernetes.kai.kai_objects import QUEUES, TOPOLOGIES
from bough.backends.kubernetes.kai.queue_changes import WRITTEN
from bough.backends.kubernetes.kai.queue_keeper import QueueKeeper
from bough.backends.kubernetes.kai.wanted_objects import Owner, wanted_objects
from bough.kube.client import KubeClient
from bough.kube.failures import KubeRefused
from bough.kube.objects import Kind
from bough.model.names import SHARED, QueueName
from bough.model.queue_tree import LeafQueue, PoolQueue, QueueTree
from tests.kubernetes.kai.clusters import KINDS, RevisionJudge

NAMES = ("team", "Team", "te_am", "a", "a-b", "a_b")
SUBPOOLS = ("a", "b", "B", "c.d")


class Killed(Exception):
    """The server is gone in the middle of a round."""


class Killable(KubeClient):
    """A client that is killed before a write, and counts what is asked."""

    def __init__(self, admin: KubeClient) -> None:
        super().__init__(admin.access)
        self.reads = self.writes = 0
        #: After how many more writes it is killed; `None`: never.
        self.left: int | None = None

    def list(self, *given: Any, **named: Any) -> Any:
        self.reads += 1
        return super().list(*given, **named)

    def create(self, *given: Any, **named: Any) -> Any:
        self._count()
        return super().create(*given, **named)

    def patch(self, *given: Any, **named: Any) -> Any:
        self._count()
        return super().patch(*given, **named)

    def delete(self, *given: Any, **named: Any) -> None:
        self._count()
        super().delete(*given, **named)

    def _count(self) -> None:
        if self.left is not None:
            if self.left == 0:
                raise Killed
            self.left -= 1
        self.writes += 1


class Histories:
    """One site in one cluster, through many histories."""

    def __init__(self, admin: KubeClient, namespace: str, seed: int) -> None:
        self.admin = admin
        self.client = Killable(admin)
        self.namespace = namespace
        self.owner = Owner(f"site-{namespace}", "default")
        self.chance = random.Random(seed)
        self.judge = RevisionJudge(admin, f"osmo-pool-{namespace}-")
        self.kills = self.damages = 0
        self.foreign = self._make_foreign()

    def close(self) -> None:
        self.client.close()

    def keeper(self) -> QueueKeeper:
        """As a server has it that was just started."""
        return QueueKeeper(self.client, self.owner, lambda: 0, lambda: True, lambda: None)

    def live(self, steps: int) -> None:
        """One history: trees one after the other, servers killed in between; then a judgement."""
        keeper = self.keeper()
        tree = self.tree()
        for _ in range(steps):
            tree = self.tree()
            keeper.want(tree)
            if self.chance.random() < 0.3:
                self.client.left = self.chance.randrange(8)
                try:
                    keeper.work()
                except Killed:
                    self.kills += 1
                self.client.left = None
                keeper = self.keeper()
                keeper.want(tree)
            assert keeper.work() is not None
            assert () == keeper.report().troubles
        assert self.wanted(tree) == self.found()
        assert [] == self.judge.faults()
        assert self.foreign == self.admin.get(QUEUES, self.foreign.metadata.name)
        if self.chance.random() < 0.5:
            self.damage(keeper, tree)

    def damage(self, keeper: QueueKeeper, tree: QueueTree) -> None:
        """Others change or delete one object: it is repaired in the next round, and told once."""
        kind, name = self.chance.choice(sorted(self.found()))
        told = len(keeper.report().repairs)
        self._hurt(kind, name)
        assert keeper.work() is not None
        assert self.wanted(tree) == self.found()
        assert [f"{kind}/{name}"] == [each.subject for each in keeper.report().repairs[told:]]
        keeper.work()
        assert told + 1 == len(keeper.report().repairs)
        self.damages += 1
        # What others did may have been too much; that is not ours.
        self.judge = RevisionJudge(self.admin, f"osmo-pool-{self.namespace}-")

    def _hurt(self, kind: str, name: str) -> None:
        amount = {"gpu": {self.chance.choice(["quota", "limit"]): self.chance.randrange(100, 200)}}
        label = {"metadata": {"labels": {"osmo.namespace": "changed"}}}
        ways: list[dict[str, Any] | None] = [None]
        if kind == "Queue":
            ways += [{"spec": {"resources": amount}}, {"spec": {"parentQueue": "lost"}}, label]
        elif kind == "Topology":
            ways.append(label)
        how = self.chance.choice(ways)
        if how is None:
            self.admin.delete(KINDS[kind], name)
        else:
            self.admin.patch(KINDS[kind], name, how)

    def tree(self) -> QueueTree:
        """Pools that are divided at random, as far as their quota allows."""
        names = self.chance.sample(NAMES, self.chance.randrange(4))
        return QueueTree(QueueName(self.namespace), tuple(map(self._pool, names)))

    def _pool(self, name: str) -> PoolQueue:
        quota = None if self.chance.random() < 0.15 else self.chance.randrange(40)
        left, leaves = quota or 0, []
        if quota is not None:
            for sub in self.chance.sample(SUBPOOLS, self.chance.randrange(4)):
                given = self.chance.randrange(left + 1)
                left -= given
                leaves.append(LeafQueue(QueueName(self.namespace, name, sub), given))
        shared = LeafQueue(QueueName(self.namespace, name, SHARED), None if quota is None else left)
        levels = self.chance.choice([(), ("zone",), ("zone", "rack")])
        pool = QueueName(self.namespace, name)
        return PoolQueue(pool, quota, None, 1, (shared, *leaves), levels)

    def wanted(self, tree: QueueTree) -> dict[tuple[str, str], object]:
        """What the tree makes, as the apiserver would have it."""
        made = wanted_objects(tree, self.owner)
        return {
            **{("Queue", name): each.spec for name, each in made.queues.items()},
            **{("Topology", name): each.spec for name, each in made.topologies.items()},
        }

    def found(self) -> dict[tuple[str, str], object]:
        """All of the site that the cluster has; PriorityClasses are of the whole cluster."""
        labels = ",".join(f"{name}={value}" for name, value in self.owner.labels.items())
        found: dict[tuple[str, str], object] = {}
        kinds: dict[str, Kind[Any]] = {"Queue": QUEUES, "Topology": TOPOLOGIES}
        for kind, of in kinds.items():
            for each in self.admin.list(of, labels=labels).items:
                assert WRITTEN in (each.metadata.annotations or {})
                found[kind, each.metadata.name] = each.spec
        return found

    def _make_foreign(self) -> Any:
        """A Queue of others in the middle of ours."""
        name = f"theirs-{self.namespace}"
        spec = {"resources": {"gpu": {"quota": 5}}, "parentQueue": f"osmo-default-{self.namespace}"}
        body = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}}
        try:
            return self.admin.create(QUEUES, {**body, "spec": spec})
        except KubeRefused:
            return self.admin.get(QUEUES, name)
