"""What a careless or a hostile user declares neither breaks a plan nor makes it depend on luck."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings

from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import plan
from bough.core.cycle.waits import is_waiting
from bough.core.explain.certificate import certificate
from bough.model.cluster import Node, Resources
from bough.model.gang import Gang, Pod, SubGroup
from bough.model.policy import KAI, KAI_FAIR, KUEUE, KUEUE_FAIR, OSMO, Policy
from bough.model.quota import FlavorQuotas, Queue, Quota, ResourceGroup
from bough.model.snapshot import Snapshot
from tests.oracles.cycle import all_gangs, check_nodes
from tests.property.test_mixed_forms import check_told
from tests.strategies_cycle import seeds
from tests.worlds_odd import OddHistory

CYCLES = 5
PRESETS = (OSMO, KUEUE, KUEUE_FAIR, KAI, KAI_FAIR)
every_preset = pytest.mark.parametrize("policy", PRESETS, ids=lambda each: each.name)
few = settings(max_examples=settings().max_examples // 2)


@every_preset
@few
@given(random=seeds())
def test_odd_worlds_are_planned_the_same_with_and_without_a_memo(
    policy: Policy, random: Random
) -> None:
    history = OddHistory(random, policy, Memo())
    for _ in range(CYCLES):
        for _ in range(random.randint(0, 5)):
            history.happen()
        before = history.snapshot
        cold = history.cold()
        decided = history.step()
        assert cold.digest == decided.digest
        check_told(before, policy, decided)
        check_nodes(before, decided, history.snapshot)


@every_preset
@few
@given(random=seeds())
def test_what_waits_in_an_odd_world_is_explained(policy: Policy, random: Random) -> None:
    history = OddHistory(random, policy, Memo())
    for _ in range(CYCLES):
        for _ in range(random.randint(0, 5)):
            history.happen()
        history.step()
    waiting = [name for name, gang in all_gangs(history.snapshot).items() if is_waiting(gang)]
    for name in waiting[:3]:
        found = certificate(history.snapshot, policy, name)
        assert found is not None, f"{name} waits, and there is no certificate"


def test_a_gang_of_thousands_of_subgroups_starts_with_as_many_as_fit() -> None:
    names = [f"s{at:04}" for at in range(3000)]
    one = Resources(gpus=1, cpu_milli=1, memory_bytes=1, pods=1)
    gang = Gang(
        "sweep",
        "q",
        tuple(Pod(f"{name}-0", name, one) for name in names),
        tuple(SubGroup(name, None, 1) for name in names),
        minimum=10,
        preemptible=True,
    )
    group = ResourceGroup(("gpu",), (FlavorQuotas("any", {"gpu": Quota(40)}),))
    nodes = tuple(Node(f"n{at}", Resources(8, 64_000, 2**40, 110)) for at in range(5))
    world = Snapshot(queues=(Queue("q", None, (group,)),), nodes=nodes, gangs={"q": (gang,)})

    decided = plan(world, OSMO)

    assert 40 == len(decided.binds)
    assert 10 == sum(not bind.growth for bind in decided.binds)


def test_the_hash_seed_means_nothing_in_odd_worlds() -> None:
    outputs = {_digests_under(seed) for seed in ("1", "2")}

    assert 1 == len(outputs)
    assert 20 * CYCLES == len(outputs.pop().splitlines())


def _digests_under(hash_seed: str) -> str:
    root = str(Path(__file__).parents[2])
    return subprocess.run(
        [sys.executable, "-c", "from tests.property.test_odd_worlds import *; print_digests()"],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": root},
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def print_digests() -> None:
    """The plans of some histories, in few words."""
    for seed in range(20):
        history = OddHistory(Random(seed), PRESETS[seed % len(PRESETS)], Memo())
        for _ in range(CYCLES):
            for _ in range(4):
                history.happen()
            sys.stdout.write(history.step().digest + "\n")
