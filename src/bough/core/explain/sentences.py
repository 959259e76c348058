"""The dominant reason in one sentence, with its numbers; and each remedy in one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from bough.model.certificate import Excess, Ledger, NodeShare
from bough.model.cluster import Resources
from bough.model.plan import PodShortage
from bough.model.quota import FlavorResource
from bough.model.reason import Refusal, RefusalKind
from bough.model.remedy import (
    AddNodes,
    AnyNodes,
    BePreemptible,
    Change,
    End,
    LowerMinimum,
    Move,
    Raise,
    RaisePriority,
    Resume,
    Step,
    Tolerate,
    Uncordon,
    Untangle,
    Weigh,
)
from bough.model.shortage import Cause, Explanation, Lack, NodeCount, Together
from bough.model.words import Words, write_amount

#: How many workloads are named in a sentence.
_NAMED = 3
_CAUSES = {
    Cause.FLAVOR: "not for its queue",
    Cause.OUTSIDE: "outside of the topology",
    Cause.CORDONED: "cordoned or not ready",
    Cause.SELECTOR: "ruled out by its node selector",
    Cause.TAINT: "tainted",
    Cause.NONE: "with room for some of them",
}


def say_refusal(refusal: Refusal, ledger: Ledger, words: Words) -> str:
    """What is asked for, what is left and where; the arithmetic is in the refusal itself."""
    what = refusal.flavor_resource
    if refusal.kind is not RefusalKind.OVER_QUOTA or what is None:
        return refusal.say(words)
    node = words.node(refusal.node)
    if ledger is Ledger.GUARANTEED:
        left = f"of the quota of {node}"
        if refusal.promised:
            left += f" besides {_amount(words, what, refusal.promised)} kept for others"
    elif refusal.borrowing_limit:
        left = f"before {node} is at its limit"
    else:
        left = f"of all that {node} has"
    never = "; it would not fit even if nothing ran" if refusal.never else ""
    return (
        f"it needs {_amount(words, what, refusal.requested)} and "
        f"{_write(what, refusal.available)} "
        f"{'is' if refusal.available == 1 else 'are'} left {left}{never}"
    )


def say_shortage(shortage: PodShortage) -> str:
    """A subgroup that lacks pods."""
    what = _count(shortage.needed, "pod" if shortage.leaf else "subgroup")
    there = f"{'is' if shortage.available == 1 else 'are'} {shortage.available}"
    missing = f"{shortage.missing} short"
    return f"{shortage.subgroup} needs {what} and there {there}: {missing}"


def say_places(why: Explanation) -> str:
    """What has no place, and why the nodes do not take it."""
    if not why.lacks:
        first = why.short[0]
        return (
            f"{first.subgroup} needs {first.needed} of {first.candidates} subgroups and "
            f"{first.found} can be placed"
        )
    lack = why.lacks[0]
    if lack.unsupported:
        return f"{lack.subgroup} asks for {lack.unsupported}, which cannot be planned"
    if lack.absent:
        return f"no node has {_join(list(lack.absent))}"
    if lack.together is not None:
        return say_together(lack, lack.together)
    text = (
        f"{lack.missing} of {_count(lack.needed, 'pod')} of {lack.subgroup} "
        f"({say_requests(lack.requests)} each) {'has' if lack.missing == 1 else 'have'} no place"
    )
    causes = ", ".join(say_cause(each) for each in lack.nodes)
    return f"{text}: of the nodes {causes}" if causes else f"{text}: there are no nodes"


def say_together(lack: Lack, together: Together) -> str:
    """What does not fit into any one domain."""
    pods = _count(together.needed, "pod")
    text = f"{pods} of {lack.subgroup} ({say_requests(lack.requests)} each) must be in one "
    if not together.best:
        return f"{text}{together.level}, and there is none that may be used"
    best = together.best[0]
    most = f"the best of {together.domains}, {best.domain}, has room for {best.pods}"
    return f"{text}{together.level}; {most}: {max(0, together.needed - best.pods)} short"


def say_cause(each: NodeCount) -> str:
    """How many nodes have one cause."""
    if each.cause is Cause.RESOURCE:
        return f"{each.nodes} {'lacks' if each.nodes == 1 else 'lack'} {each.resource}"
    return f"{each.nodes} {'is' if each.nodes == 1 else 'are'} {_CAUSES[each.cause]}"


def say_requests(requests: Resources) -> str:
    """What each pod asks for."""
    amounts = (
        ("gpu", requests.gpus),
        ("cpu", requests.cpu_milli),
        ("memory", requests.memory_bytes),
        *requests.other,
    )
    return ", ".join(f"{write_amount(name, n)} {name}" for name, n in amounts if n) or "nothing"


def say_excess(excess: Excess, words: Words) -> str:
    """A node that uses more than its quota."""
    what = excess.flavor_resource
    less = f", {_write(what, excess.withdrawn)} of which others use above theirs"
    return (
        f"{words.node(excess.node)} used {_write(what, excess.used)} of its quota of "
        f"{_amount(words, what, excess.quota)}{less if excess.withdrawn else ''}"
    )


def say_shares(shares: Sequence[NodeShare], words: Words) -> str:
    """Of two nodes below the same one, what each takes of what could be lent."""
    parts = [
        f"{words.node(each.node)} is {each.share}"
        + ("" if each.weight == "1" else f" for its weight of {each.weight}")
        for each in shares
    ]
    return f"the share of {', that of '.join(parts)}"


def say_steps(told: Sequence[tuple[Step, tuple[Change, ...]]], flavors: tuple[str, ...]) -> str:
    """What to do: steps of one kind are one part of the sentence."""
    parts = [
        _PARTS[kind]([change for _, each in several for change in each])
        for kind, several in groupby(told, key=lambda each: type(each[0]))
    ]
    some = f": it would get {', '.join(flavors)}" if flavors else ""
    return "; and ".join(["; ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts) + some


def _say_ends(changes: list[Change]) -> str:
    names = _names(changes)
    return f"wait until {name_some(names)} {'ends' if len(names) == 1 else 'have ended'}"


def _say_preemptible(changes: list[Change]) -> str:
    low = changes[0].after == "LOW"
    return f"{'run it as LOW' if low else 'make it preemptible'} (it may borrow, and be evicted)"


def _say_priority(changes: list[Change]) -> str:
    first = changes[0]
    before = "" if first.before is None else f" from {first.before}"
    return f"raise its priority{before} to {first.after}"


def _say_minimums(changes: list[Change]) -> str:
    parts = [f"{each.word} from {each.before} to {each.after}" for each in changes]
    return f"lower {_join(parts)}"


def _say_taint(changes: list[Change]) -> str:
    after = changes[0].after
    return f"let its pods tolerate the taint {after['key'] if isinstance(after, dict) else after}"


def _say_resumed(changes: list[Change]) -> str:
    return _join(
        [
            "make it active again"
            if each.after is True
            else f"let {each.kind} {each.name} take workloads again"
            for each in changes
        ]
    )


def _say_uncordoned(changes: list[Change]) -> str:
    names = _names(changes)
    return f"uncordon node{'' if len(names) == 1 else 's'} {name_some(names)}"


def _say_untangled(changes: list[Change]) -> str:
    first = changes[0]
    return f"take {first.kind} {first.name} out of the cycle: it must have no parent"


def _say_nodes(changes: list[Change]) -> str:
    names = dict.fromkeys(_names(changes))
    more = [each for each in changes if each.field and each.name == changes[0].name]
    but = ", but with " + _join(list(map(_say_more, more))) if more else ""
    each = " each" if more and len(names) > 1 else ""
    return f"add {_count(len(names), 'node')} like {changes[0].after}{but}{each}"


def _say_more(change: Change) -> str:
    """What a new node has that the one that it is like has not."""
    return (
        f"{change.after} {change.resource}" if change.resource else f"{change.word}={change.after}"
    )


def _say_raises(changes: list[Change]) -> str:
    owners: dict[tuple[str, str], list[str]] = {}
    for each in changes:
        parts = owners.setdefault((each.kind, each.name), [])
        whose = f"its {each.word.removeprefix('the ')}"
        if not parts:
            whose = f"{each.word} of {each.kind} {each.name}"
        parts.append(f"{whose} from {each.before} to {each.after} {each.resource}".rstrip())
    return f"raise {_join([part for parts in owners.values() for part in parts])}"


def _names(changes: list[Change]) -> tuple[str, ...]:
    return tuple(change.name for change in changes)


#: How steps of each kind are told.
_PARTS: dict[type, Callable[[list[Change]], str]] = {
    End: _say_ends,
    BePreemptible: _say_preemptible,
    RaisePriority: _say_priority,
    LowerMinimum: _say_minimums,
    AnyNodes: lambda _: "let its pods run on any nodes, whatever their labels",
    Tolerate: _say_taint,
    Move: lambda changes: f"move it to {changes[0].word} {changes[0].after}",
    Resume: _say_resumed,
    Untangle: _say_untangled,
    Uncordon: _say_uncordoned,
    Raise: _say_raises,
    Weigh: _say_raises,
    AddNodes: _say_nodes,
}


def name_some(names: tuple[str, ...]) -> str:
    """The first of some names, and how many there are besides."""
    if len(names) <= _NAMED + 1:
        return _join(list(names))
    return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} others"


def _join(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _write(what: FlavorResource, amount: int) -> str:
    return write_amount(what.resource, amount)


def _amount(words: Words, what: FlavorResource, amount: int) -> str:
    return words.amount(what, _write(what, amount))
