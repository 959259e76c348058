"""`python -m tests.bench.decisions CHECKOUT`: whether another checkout decides the same.

Random histories of gangs, of Kueue's workloads, of both and of fair shares are played here, and
with the program of the other checkout, each with the memo of its caller. Every plan counts, byte
for byte. For changes that may only make planning cheaper; it takes a minute for each thousand.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from random import Random

from bough.core.cycle.memo import Memo
from bough.model.plan import Plan
from bough.model.policy import KAI, KAI_FAIR, KUEUE, KUEUE_FAIR, OSMO
from tests.laws_cycle import History as GangHistory
from tests.worlds_cycle import History as KueueHistory
from tests.worlds_cycle import policy
from tests.worlds_fair import FairWorld
from tests.worlds_mixed import MixedHistory

#: How many histories of each kind, and of how many cycles.
HISTORIES = 1000
CYCLES = 8
PRESETS = (OSMO, KUEUE, KUEUE_FAIR, KAI, KAI_FAIR)


def main(arguments: list[str]) -> int:
    """Compare, or print what was decided here."""
    if arguments[:1] == ["--print"]:
        for line in _lines(int(arguments[1])):
            print(line)
        return 0
    if len(arguments) not in {1, 2}:
        print("usage: python -m tests.bench.decisions CHECKOUT [HISTORIES]", file=sys.stderr)
        return 2
    here = Path(__file__).parents[2]
    number = arguments[1] if len(arguments) == 2 else str(HISTORIES)
    ours, theirs = (_run(here, each, number) for each in (here, Path(arguments[0]).resolve()))
    differ = [one for one, other in zip(ours, theirs, strict=True) if one != other]
    print(f"{len(ours):,} histories, {len(differ)} of them decided otherwise")
    for line in differ[:20]:
        print(f"  {line}")
    return 1 if differ else 0


def _run(here: Path, place: Path, number: str) -> list[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.bench.decisions", "--print", number],
        cwd=here,
        env={**os.environ, "PYTHONPATH": f"{place / 'src'}{os.pathsep}{here}"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()


def _lines(number: int) -> Iterator[str]:
    """What was decided in each history, as a digest."""
    for seed in range(number):
        for kind, plans in (
            ("gangs", _gangs(seed)),
            ("kueue", _kueue(seed)),
            ("mixed", _mixed(seed)),
            ("fair", _fair(seed)),
        ):
            digest = sha256()
            for decided in plans:
                digest.update(decided.digest.encode())
            yield f"{kind} {seed} {digest.hexdigest()}"


def _gangs(seed: int) -> Iterator[Plan]:
    history = GangHistory(Random(seed), flavors=1 + seed % 2, memo=Memo())
    for _ in range(CYCLES):
        history.live()
        yield history.step()
        history.end_some()


def _kueue(seed: int) -> Iterator[Plan]:
    random = Random(seed)
    history = KueueHistory(random, policy(random))
    memo = Memo()
    for _ in range(CYCLES):
        history.happen()
        decided = history.plan(memo)
        yield decided
        history.apply(decided)


def _mixed(seed: int) -> Iterator[Plan]:
    random = Random(seed)
    history = MixedHistory(random, PRESETS[seed % len(PRESETS)], Memo())
    for _ in range(CYCLES):
        for _ in range(random.randint(0, 5)):
            history.happen()
        yield history.step()


def _fair(seed: int) -> Iterator[Plan]:
    world = FairWorld(Random(seed))
    world.memo = Memo()
    for _ in range(CYCLES):
        world.come(3)
        yield world.step()
        world.end_evicted()
        world.go()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
