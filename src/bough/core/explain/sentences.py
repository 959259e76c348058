"""The dominant reason in one sentence, with its numbers; and each remedy in one.

Must not know how a reason was found.
"""

from __future__ import annotations

from bough.model.amount import write_amount
from bough.model.certificate import Excess, Ledger, Remedy, RemedyKind
from bough.model.cluster import Resources
from bough.model.plan import PodShortage
from bough.model.quota import FlavorResource
from bough.model.reason import Refusal, RefusalKind
from bough.model.shortage import Cause, Explanation, Lack, NodeCount, Together

#: So many workloads are named in a sentence.
_NAMED = 3
_CAUSES = {
    Cause.OUTSIDE: "outside of the topology",
    Cause.CORDONED: "cordoned or not ready",
    Cause.SELECTOR: "ruled out by its node selector",
    Cause.TAINT: "tainted",
    Cause.NONE: "with room for some of them",
}


def say_refusal(refusal: Refusal, ledger: Ledger) -> str:
    """The violated inequality."""
    what = refusal.flavor_resource
    if refusal.kind is not RefusalKind.OVER_QUOTA or what is None:
        return refusal.sentence
    if ledger is Ledger.GUARANTEED:
        left = f"of the quota of {refusal.node}"
        if refusal.promised:
            left += f" besides {_amount(what, refusal.promised)} kept for others"
    elif refusal.borrowing_limit:
        left = f"before {refusal.node} is at its limit"
    else:
        left = f"of all that {refusal.node} has"
    never = "; it would not fit even if nothing ran" if refusal.never else ""
    return (
        f"it needs {_amount(what, refusal.requested)} and {_write(what, refusal.available)} "
        f"{'is' if refusal.available == 1 else 'are'} left {left}: {inequality(refusal)}{never}"
    )


def inequality(refusal: Refusal) -> str:
    """The inequality of an amount that is too large, with its numbers."""
    what = refusal.flavor_resource
    if what is None:
        return refusal.sentence
    balance, passed = _write(what, refusal.balance), _write(what, refusal.passed)
    limit = f"-{_write(what, refusal.borrowing_limit)}" if refusal.borrowing_limit else "0"
    after = _write(what, refusal.balance - refusal.passed)
    return f"T = {balance}, {balance} - {passed} = {after} < {limit}"


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


def say_excess(excess: Excess) -> str:
    """A node that uses more than its quota."""
    what = excess.flavor_resource
    return (
        f"{excess.node} used {_write(what, excess.used)} of its quota of "
        f"{_amount(what, excess.quota)}: T = {_write(what, excess.balance)} < 0"
    )


def say_remedy(remedy: Remedy) -> str:
    """What to do."""
    match remedy.kind:
        case RemedyKind.WAIT:
            return f"wait until {name_some(remedy.ends)} {_ends(remedy.ends)}"
        case RemedyKind.RUN_AS_LOW:
            return "run it as LOW: it may borrow, and it may be evicted"
        case RemedyKind.SMALLER_MINIMUM:
            of = "" if remedy.subgroup is None else f" of {remedy.subgroup}"
            return f"lower the minimum{of} from {remedy.before} to {remedy.minimum}"
        case RemedyKind.OTHER_FLAVOR:
            flavors = f": it would get {', '.join(remedy.flavors)}" if remedy.flavors else ""
            return f"let its pods run on any nodes, whatever their labels{flavors}"
        case RemedyKind.RESUME:
            return f"let {remedy.node} take workloads again"
        case RemedyKind.UNTANGLE:
            return f"take {remedy.node} out of the cycle: it must have no parent"
        case RemedyKind.RAISE_QUOTA:
            return f"raise the quota {_raises(remedy)}"
        case RemedyKind.RAISE_LIMIT:
            return f"raise the borrowing limit {_raises(remedy)}"


def name_some(names: tuple[str, ...]) -> str:
    """The first of some names, and how many there are besides."""
    if len(names) <= _NAMED + 1:
        return _join(list(names))
    return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} others"


def _raises(remedy: Remedy) -> str:
    return _join(
        [f"of {each.node} by {_amount(each.flavor_resource, each.by)}" for each in remedy.raises]
    )


def _join(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _ends(names: tuple[str, ...]) -> str:
    return "ends" if len(names) == 1 else "have ended"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _write(what: FlavorResource, amount: int) -> str:
    return write_amount(what.resource, amount)


def _amount(what: FlavorResource, amount: int) -> str:
    return f"{_write(what, amount)} {what}"
