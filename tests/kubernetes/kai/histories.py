"""Random histories of pools and subpools on a real apiserver, judged at each revision."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from bough.backends.kubernetes.kai.kai_types import QUEUES
from bough.backends.kubernetes.kai.manifests import KINDS as KEPT
from bough.backends.kubernetes.kai.object_changes import WRITTEN, content_of
from bough.backends.kubernetes.kai.queue_keeper import QueueKeeper
from bough.backends.kubernetes.kai.wanted_objects import PRIORITIES, Owner, wanted_objects
from bough.kube.client import KubeClient
from bough.kube.failures import KubeNotFound, KubeRefused
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
        self.kills = 0
        #: Objects that were damaged by hand, by kind.
        self.damages: Counter[str] = Counter()
        self.foreign = self._make_foreign()
        for name in PRIORITIES:
            # There is one of each in a cluster, which may be that of a site before this one.
            with contextlib.suppress(KubeNotFound):
                admin.delete(KINDS["PriorityClass"], f"osmo-{name}")

    def close(self) -> None:
        self.client.close()

    def keeper(self, leads: Callable[[], bool] = lambda: True) -> QueueKeeper:
        """As a server has it that was just started."""
        return QueueKeeper(self.client, self.owner, lambda: 0, leads, lambda: None)

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
        there = sorted(self.found())
        kind = self.chance.choice(sorted({kind for kind, _ in there}))
        name = self.chance.choice([name for of, name in there if of == kind])
        told = len(keeper.report().repairs)
        self._hurt(kind, name)
        assert keeper.work() is not None
        assert self.wanted(tree) == self.found()
        assert [f"{kind}/{name}"] == [each.subject for each in keeper.report().repairs[told:]]
        keeper.work()
        assert told + 1 == len(keeper.report().repairs)
        self.damages[kind] += 1
        # What others did may have been too much; that is not ours.
        self.judge = RevisionJudge(self.admin, f"osmo-pool-{self.namespace}-")

    def _hurt(self, kind: str, name: str) -> None:
        """Change one object as people do it who may do everything."""
        amount = {"gpu": {self.chance.choice(["quota", "limit"]): self.chance.randrange(100, 200)}}
        label = {"metadata": {"labels": {"osmo.namespace": "changed"}}}
        ways: dict[str, list[dict[str, Any]]] = {
            "Queue": [{"spec": {"resources": amount}}, {"spec": {"parentQueue": "lost"}}, label],
            "Topology": [label, {"spec": {"levels": [{"nodeLabel": "other"}]}}],
            "PriorityClass": [{"globalDefault": True}, {"value": 7}],
        }
        unsigned = {"metadata": {"annotations": {WRITTEN: None}}}
        how = self.chance.choice([None, unsigned, *ways[kind]])
        if how is None:
            self.admin.delete(KINDS[kind], name)
            return
        try:
            self.admin.patch(KINDS[kind], name, how)
        except KubeRefused:
            # It cannot be changed: they delete it, and make it again with their change.
            found = self.admin.get(KINDS[kind], name)
            kept = {each: found["metadata"][each] for each in ("name", "labels", "annotations")}
            self.admin.delete(KINDS[kind], name)
            api = KINDS[kind].api.removeprefix("apis/")
            made = {"apiVersion": api, "kind": kind, **found, **how, "metadata": kept}
            self.admin.create(KINDS[kind], made)

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
        kinds = zip(KEPT, (made.queues, made.topologies, made.classes), strict=True)
        return {
            (kind, name): content_of(each) for kind, items in kinds for name, each in items.items()
        }

    def found(self) -> dict[tuple[str, str], object]:
        """All of the site that the cluster has."""
        labels = ",".join(f"{name}={value}" for name, value in self.owner.labels.items())
        found: dict[tuple[str, str], object] = {}
        for kind, of in KEPT.items():
            for each in self.admin.list(of, labels=labels).items:
                assert WRITTEN in (each.metadata.annotations or {})
                found[kind, each.metadata.name] = content_of(each)
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
