"""What holds for the presets that share by weight, over random worlds in the form of Kueue."""

from __future__ import annotations

from random import Random

from bough.core.cycle.memo import Memo
from bough.model.policy import KUEUE_FAIR, Policy
from tests.worlds_cycle import History, fill

CYCLES = 4
#: So many cycles are given to a world to come to rest; the longest of many thousands took half.
MOST_CYCLES = 120
#: A queue looks at one gang in each cycle, so that the next to be looked at may still start.
QUIET = 8


def check_rest(random: Random, policy: Policy = KUEUE_FAIR) -> int:
    """Once nothing else happens, nothing starts and nothing is evicted any more.

    How many gangs were evicted on the way there.
    """
    history = History(random, policy, weights=True)
    fill(history, 12)
    memo = Memo()
    for _ in range(CYCLES):
        history.happen()
        history.apply(history.plan(memo))
    quiet = evicted = 0
    for _ in range(MOST_CYCLES):
        history.now_ms += 1
        decided = history.plan(memo)
        evicted += len(decided.evictions)
        quiet = 0 if decided.admits or decided.evictions else quiet + 1
        if quiet >= QUIET or history.lines.are_at_rest:
            return evicted
        history.apply(decided)
    raise AssertionError("they evict in circles")
