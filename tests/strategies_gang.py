"""Random gangs for Hypothesis: small trees, pods in every state, some minimums out of reach."""

from __future__ import annotations

from hypothesis import strategies as st

from bough.core.gang.order import NAME_ORDER, SPEC_ORDER, Order
from bough.core.gang.tree import GangTree
from bough.model.gang import Gang, Pod, PodState, SubGroup

#: Names that sort differently from their positions.
_NAMES = ("mike", "alfa", "zulu", "echo", "kilo", "bravo", "lima", "delta", "yank", "oscar", "golf")


def orders() -> st.SearchStrategy[Order]:
    return st.sampled_from([SPEC_ORDER, NAME_ORDER])


@st.composite
def gangs(
    draw: st.DrawFn, states: tuple[PodState, ...] = tuple(PodState), largest_leaf: int = 3
) -> Gang:
    """A gang with up to three levels of subgroups."""
    subgroups: list[SubGroup] = []
    children = _grow(draw, None, 0, subgroups)
    minimum = draw(_child_minimum(children)) if children else draw(st.integers(1, largest_leaf))
    inner = {subgroup.parent for subgroup in subgroups}
    leaves = [group.name for group in subgroups if group.name not in inner] or [None]
    pods = [
        Pod(
            name=f"{leaf or 'pod'}-{index}",
            subgroup=leaf,
            state=draw(st.sampled_from(states)),
            rank=draw(st.none() | st.integers(0, 2)),
        )
        for leaf in leaves
        for index in range(draw(st.integers(0, largest_leaf)))
    ]
    return Gang(
        name="gang",
        queue="queue",
        pods=tuple(draw(st.permutations(pods))),
        subgroups=tuple(draw(st.permutations(subgroups))),
        minimum=minimum,
    )


def trees(
    states: tuple[PodState, ...] = tuple(PodState), largest_leaf: int = 3
) -> st.SearchStrategy[GangTree]:
    return st.builds(GangTree.of, gangs(states, largest_leaf), orders())


def _grow(draw: st.DrawFn, parent: str | None, depth: int, subgroups: list[SubGroup]) -> int:
    """Add subgroups below a parent; say how many are directly below it."""
    room = len(_NAMES) - len(subgroups)
    count = draw(st.integers(0, min(3, room))) if depth < 3 else 0
    mine = [_NAMES[len(subgroups) + index] for index in range(count)]
    positions: list[int] = []
    for name in mine:
        positions.append(len(subgroups))
        subgroups.append(SubGroup(name=name, parent=parent))
    for name, position in zip(mine, positions, strict=True):
        below = _grow(draw, name, depth + 1, subgroups)
        minimum = draw(_child_minimum(below)) if below else draw(st.integers(1, 3))
        subgroups[position] = SubGroup(name=name, parent=parent, minimum=minimum)
    return count


def _child_minimum(children: int) -> st.SearchStrategy[int | None]:
    return st.none() | st.integers(1, children)
