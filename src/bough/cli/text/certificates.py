"""Certificates as text: why a workload waits, starts or runs, and what would help."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from bough.cli.output import count, printable
from bough.cli.tables import NOTHING, render_plain

if TYPE_CHECKING:
    from bough.api.why import CertificateAnswer, NodeCauseCount, QuotaRefusal, RemedyList

#: How an amount of a resource is written: resource, amount.
Writer = Callable[[str, int], str]

#: How many holders are listed; JSON has them all.
MAXIMUM_LISTED = 10
_CAUSES = {
    "flavor": "not for its queue",
    "outside_topology": "outside of the topology",
    "cordoned": "cordoned or not ready",
    "selector": "ruled out by the node selector",
    "taint": "tainted",
    "fits": "with room",
}


class ExplainedCertificate(NamedTuple):
    """A certificate with what belongs to it."""

    certificate: CertificateAnswer
    remedies: RemedyList | None = None
    #: Why more of an elastic gang does not start.
    growth: str | None = None
    #: By which rule it is evicted, and why.
    eviction: tuple[str, str] | None = None


def render_certificate(answer: ExplainedCertificate, write: Writer, queue: str = "Queue") -> str:
    """One sentence, then what is behind it, then what would help."""
    found = answer.certificate
    name = printable(found.workload)
    lines = [f"{name} {_verdict(found)}: {printable(found.sentence)}"]
    for part in (
        list(_arithmetic_lines(found.refusal, write)),
        list(_growth_lines(answer.growth)),
        list(_shortage_lines(found)),
        list(_lack_lines(found)),
        list(_option_lines(found)),
        _holder_lines(found, write, queue),
        list(_eviction_lines(answer.eviction)),
        list(_remedy_lines(answer.remedies)) if found.verdict == "waits" else [],
    ):
        if part:
            lines += ["", *part]
    return "\n".join(lines)


def _verdict(found: CertificateAnswer) -> str:
    words = {"nominated": "is nominated", "ended": "has ended"}
    return words.get(found.verdict, found.verdict) + (f" ({found.reason})" if found.reason else "")


def _arithmetic_lines(refusal: QuotaRefusal | None, write: Writer) -> Iterator[str]:
    """The violated inequality of an amount that is too large, with its numbers."""
    if refusal is None or refusal.kind != "over_quota" or not refusal.node:
        return
    resource = refusal.flavor_resource.resource if refusal.flavor_resource else ""
    balance, passed, limit = refusal.balance, refusal.passed, refusal.borrowing_limit
    before, taken = write(resource, balance), write(resource, passed)
    floor = write(resource, -limit) if limit else "0"
    after = write(resource, balance - passed)
    yield f"  T = {before}, {before} - {taken} = {after} < {floor}"


def _growth_lines(growth: str | None) -> Iterator[str]:
    if growth is not None:
        yield f"  {printable(growth)}"


def _shortage_lines(found: CertificateAnswer) -> Iterator[str]:
    for each in found.shortages:
        what = count(each.needed, "pod" if each.leaf else "subgroup")
        has = f"there {'is' if each.available == 1 else 'are'} {each.available}"
        yield f"  {printable(each.subgroup)} needs {what}, {has}: {each.missing} short"


def _lack_lines(found: CertificateAnswer) -> Iterator[str]:
    for lack in found.lacks:
        pods = f"{lack.found} of {count(lack.needed, 'pod')}"
        yield f"  {printable(lack.subgroup)}: {pods} can be placed"
        together = lack.together
        if together is not None:
            rooms = ", ".join(
                f"{printable(each.domain)} has room for {each.pods}" for each in together.best
            )
            level = printable(together.level)
            yield f"    {count(together.needed, 'pod')} in one {level}: {rooms or 'none'}"
        for each in lack.nodes:
            yield f"    {count(each.nodes, 'node')} {_cause(each)}"


def _cause(each: NodeCauseCount) -> str:
    if each.cause == "resource":
        return f"without enough {printable(each.resource or '')}"
    return _CAUSES[each.cause]


def _option_lines(found: CertificateAnswer) -> Iterator[str]:
    if len(found.options) < 2:
        return
    for each in found.options:
        reason = each.unsuitable or (each.refusal and each.refusal.sentence)
        yield f"  on {printable(each.flavor)}: {printable(reason or 'could be had')}"


def _holder_lines(found: CertificateAnswer, write: Writer, queue: str) -> list[str]:
    holders, missing = found.holders, found.missing
    if not holders or missing is None:
        return []
    resource = missing.resource
    owners = any(each.owner for each in holders)
    rows = [
        [
            printable(each.workload),
            printable(each.queue),
            *([printable(each.owner)] if owners else []),
            *(
                write(resource, amount) if amount else NOTHING
                for amount in (each.amount, each.guaranteed, each.borrowed, each.evictable)
            ),
        ]
        for each in holders[:MAXIMUM_LISTED]
    ]
    owner = ["Owner"] if owners else []
    header = ["Workload", queue, *owner, "Has", "Guaranteed", "Borrowed", "Evictable"]
    table = render_plain(header, rows, numbers=range(2 + owners, 6 + owners))
    of = f"{printable(missing.flavor)}/" if missing.flavor else ""
    lines = [f"who has {of}{printable(resource)}"]
    lines += [f"  {line}" for line in table.splitlines()]
    more = len(holders) - MAXIMUM_LISTED
    return [*lines, f"  ... and {more} more"] if more > 0 else lines


def _eviction_lines(eviction: tuple[str, str] | None) -> Iterator[str]:
    if eviction is not None:
        rule, sentence = eviction
        yield f"evicted ({rule}): {printable(sentence)}"


def _remedy_lines(remedies: RemedyList | None) -> Iterator[str]:
    if remedies is None:
        return
    plans = count(remedies.plans, "plan")
    if not remedies.found:
        yield f"nothing was found that would help ({plans})"
    else:
        yield f"what would help, the cheapest first ({plans})"
    for number, each in enumerate(remedies.found, 1):
        rough = "" if each.exact else "; perhaps less would do"
        yield f"  {number}. {printable(each.sentence)}{rough}"
    if remedies.given_up:
        kinds = ", ".join(kind.replace("_", " ") for kind in remedies.given_up)
        yield f"  the search was cut short for: {kinds}"
