"""Laws of the preset kai, on random trees, nodes, gangs and short histories."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings

from bough.model.plan import Plan
from bough.model.policy import KAI
from tests.laws_cycle import MOST_CYCLES, History
from tests.oracles.cycle import applied, check_complete, check_gangs, check_nodes, check_quota
from tests.simulation import changes, replace
from tests.strategies_cycle import LOW, NORMAL, randoms

CYCLES = 5


class KaiHistory(History):
    """A history of queues that differ in priority; what every plan must keep is asked of each."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.policy = KAI
        queues = (
            replace(each, priority=random.choice((100, 101))) for each in self.snapshot.queues
        )
        self.snapshot = replace(self.snapshot, queues=tuple(queues))

    def apply(self, decided: Plan) -> None:
        before, after = self.snapshot, applied(self.snapshot, decided)
        check_complete(before, decided)
        check_gangs(before, decided, after)
        check_nodes(before, decided, after)
        check_quota(before, decided, after)
        super().apply(decided)


@settings(max_examples=settings().max_examples // 3)
@given(randoms())
def test_no_plan_breaks_a_law_and_all_comes_to_rest(random: Random) -> None:
    """Idle room goes by turns, and what is preemptible evicts, too: no two evict in circles."""
    history = KaiHistory(random)
    for _ in range(CYCLES):
        history.live()
        history.step()
    for _ in range(MOST_CYCLES):
        if not changes(history.step()) and not history.ending:
            return
        history.end_some()
        history.tick()
    raise AssertionError("there is no end of it")


@settings(max_examples=settings().max_examples // 3)
@given(randoms())
def test_right_after_a_plan_nothing_starts_beside_those_that_it_has_nominated(
    random: Random,
) -> None:
    """What an eviction leaves over is given away in the same cycle."""
    history = KaiHistory(random)
    for _ in range(CYCLES):
        for priority in random.choices((LOW, NORMAL), weights=(3, 1), k=random.randint(2, 8)):
            history.submit(history.generator.gang(history.snapshot, priority))
        decided = history.step()
        again = history.plan()
        if decided.evictions and not again.evictions and nominated(decided) <= served(again):
            told = {each.workload for each in decided.evictions}
            assert served(again) <= served(decided) | told


def nominated(decided: Plan) -> set[str]:
    return {each.workload for each in decided.nominations}


def served(decided: Plan) -> set[str]:
    """What starts, or will once others have ended."""
    return {bind.workload for bind in decided.binds if not bind.growth} | nominated(decided)
