"""GPU time is the same as when it is counted moment by moment, in any order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bough.control.records.accounting import Amount, Quotas, account, merge_quotas
from bough.model.usage_stretch import Stretch

TIMES = st.integers(0, 20)


@st.composite
def stretches(draw) -> list[Stretch]:
    found = []
    for number in range(draw(st.integers(0, 12))):
        start, end = sorted((draw(TIMES), draw(TIMES)))
        found.append(
            Stretch(
                draw(st.sampled_from("pq")),
                draw(st.sampled_from(("ann", "ben", "cem"))),
                draw(st.integers(1, 4)),
                draw(st.booleans()),
                draw(st.integers(0, 3)),
                start,
                end,
                f"w{number}",
            )
        )
    return found


QUOTA = st.one_of(st.none(), st.integers(0, 8))
STEPS = st.dictionaries(TIMES, QUOTA, min_size=1, max_size=4).map(lambda each: sorted(each.items()))


def quota_at(quotas: Quotas, at: int) -> int | None:
    known = [quota for since, quota in quotas if since <= at]
    return known[-1] if known else quotas[0][1]


def moment_by_moment(members, quotas, since: int, until: int) -> dict[tuple[str, str], Amount]:
    sums: dict[tuple[str, str], Amount] = {}
    for at in range(since, until):
        for pool in "pq":
            held = [
                each for each in members if each.pool == pool and each.start_ms <= at < each.end_ms
            ]
            quota = quota_at(quotas[pool], at)
            used = sum(each.gpus for each in held)
            over = 0 if quota is None else max(0, used - quota)
            for each in sorted(held, key=lambda each: (-each.submitted_ms, each.workflow)):
                borrowed = 0 if each.guaranteed else min(over, each.gpus)
                over -= borrowed
                amount = Amount(each.gpus) if each.guaranteed else Amount(0, each.gpus, borrowed)
                key = (pool, each.user)
                sums[key] = sums.get(key, Amount()) + amount
    return sums


@given(stretches(), STEPS, STEPS, TIMES, TIMES)
def test_a_sweep_counts_what_every_moment_had(members, of_p, of_q, one, other):
    since, until = sorted((one, other))
    quotas = {"p": of_p, "q": of_q}

    found = account(members, quotas, since, until)

    assert moment_by_moment(members, quotas, since, until) == found
    assert all(0 <= each.borrowed <= each.preemptible for each in found.values())


@given(stretches(), STEPS, TIMES, TIMES, st.data())
def test_what_one_workflow_held_for_the_same_time_counts_as_one(members, steps, one, other, data):
    since, until = sorted((one, other))
    quotas = {"p": steps, "q": steps}
    parts = [data.draw(st.lists(st.integers(1, 4), max_size=3)) for _ in members]
    apart = [
        each._replace(gpus=gpus)
        for each, more in zip(members, parts, strict=True)
        for gpus in (each.gpus, *more)
    ]
    together = [
        each._replace(gpus=each.gpus + sum(more)) for each, more in zip(members, parts, strict=True)
    ]

    found = account(together, quotas, since, until)

    assert account(apart, quotas, since, until) == found
    assert moment_by_moment(apart, quotas, since, until) == found


@given(stretches(), STEPS, st.randoms(use_true_random=False))
def test_the_order_of_attempts_does_not_matter(members, steps, random):
    quotas = {"p": steps, "q": steps}
    shuffled = list(members)
    random.shuffle(shuffled)

    assert account(members, quotas, 0, 30) == account(shuffled, quotas, 0, 30)


@given(stretches(), STEPS, TIMES)
def test_the_parts_of_a_time_add_up_to_the_whole(members, steps, cut):
    quotas = {"p": steps, "q": steps}
    sums: dict[tuple[str, str], Amount] = {}
    for since, until in ((0, cut), (cut, 30)):
        for key, amount in account(members, quotas, since, until).items():
            sums[key] = sums.get(key, Amount()) + amount

    assert account(members, quotas, 0, 30) == sums


@given(STEPS, st.lists(STEPS, max_size=3), TIMES)
def test_what_is_left_of_a_quota_is_right_at_every_moment(total, parts, at):
    left = merge_quotas(total, parts)

    whole = quota_at(total, at)
    expected = None if whole is None else whole - sum(quota_at(each, at) or 0 for each in parts)
    assert expected == quota_at(left, at)
