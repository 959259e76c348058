"""Laws of the cycle over gangs, on random trees, nodes, gangs and short histories."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

from hypothesis import given, settings

from tests import laws_cycle as laws
from tests.strategies_cycle import randoms

CYCLES = 5
#: A history is as much work as many small examples.
few = settings(max_examples=settings().max_examples // 2)


@few
@given(randoms())
def test_no_plan_of_any_history_breaks_a_law(random: Random) -> None:
    laws.check_every_plan(random, CYCLES)


@few
@given(randoms())
def test_no_plan_with_several_flavors_breaks_a_law(random: Random) -> None:
    laws.check_every_plan(random, CYCLES, flavors=2)


@few
@given(randoms())
def test_a_fixpoint_is_reached_and_stays(random: Random) -> None:
    laws.check_fixpoint(random, CYCLES, forgets=False)


@few
@given(randoms())
def test_a_fixpoint_is_reached_although_no_nominations_are_remembered(random: Random) -> None:
    laws.check_fixpoint(random, CYCLES, forgets=True)


@few
@given(randoms())
def test_no_victim_is_superfluous(random: Random) -> None:
    laws.check_victims_needed(random, CYCLES)


@few
@given(randoms())
def test_victims_are_found_where_there_are_any(random: Random) -> None:
    laws.check_victims_found(random, CYCLES)


def test_a_gang_that_could_shrink_to_its_quota_is_not_broken_in_another_order() -> None:
    """A history in which it was, as only its whole was where the preemptor would go."""
    laws.check_victims_needed(Random(999_592), 12)


def test_who_is_in_the_way_of_better_victims_is_spared() -> None:
    """A history in which the newest brought its queue down to its quota, and was of no use."""
    laws.check_victims_found(Random(1_720_894_306), 12)


def test_victims_are_really_asked_about() -> None:
    assert 20 < sum(laws.check_victims_needed(Random(seed), CYCLES) for seed in range(60))
    assert 5 < sum(laws.check_victims_found(Random(seed), CYCLES) for seed in range(60))


@few
@given(randoms())
def test_who_waits_for_quota_changes_nothing_for_others(random: Random) -> None:
    laws.check_blocked(random, CYCLES)


@few
@given(randoms())
def test_a_memo_never_changes_a_plan(random: Random) -> None:
    laws.check_memo(random, CYCLES)


@few
@given(randoms())
def test_the_order_of_what_is_declared_means_nothing(random: Random) -> None:
    laws.check_order_of_declarations(random, CYCLES)


def test_the_hash_seed_means_nothing() -> None:
    outputs = {digests_under(seed) for seed in ("1", "2")}

    assert 1 == len(outputs)
    assert 40 == len(outputs.pop().splitlines())


def digests_under(hash_seed: str) -> str:
    root = str(Path(__file__).parents[2])
    return subprocess.run(
        [sys.executable, "-c", "from tests.property.test_cycle_gangs import *; print_digests()"],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": root},
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def print_digests() -> None:
    """The plans of some histories, in few words."""
    for seed in range(8):
        history = laws.History(Random(seed), flavors=1 + seed % 2)
        for _ in range(5):
            history.live()
            sys.stdout.write(history.step().digest + "\n")
