"""`bough quota admit`: whether a request fits into a queue now; if not, what refuses it.

A refusal names the violated inequality and the queues that hold what is missing. Only quota counts:
neither node selectors nor preemption.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from bough.api.quota_answers import (
    AdmitAnswer,
    AdmitGroup,
    AdmitRefusal,
    HoldingQueue,
    HoldingWorkload,
    OverQuotaRefusal,
    TriedFlavor,
)
from bough.api.why import TreeNodeName
from bough.core.quota.tree import QuotaTree
from bough.core.quota.usage import usage_of
from bough.errors import Invalid, NotFound
from bough.formats.yaml.quantity import parse_quantity
from bough.model.admission_rules import StopPolicy
from bough.model.quota import Cohort, FlavorResource, NodeKind, Queue, TreeNode
from bough.model.reason import Refusal, RefusalKind
from bough.model.words import suggest
from bough.tools.file_problems import problem_answers
from bough.tools.load_organisation import build_tree, load_valid

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bough.model.organisation import Organisation
    from bough.model.workload import Workload


class _Question(NamedTuple):
    tree: QuotaTree
    #: Workloads that hold quota, by queue.
    holding: dict[str, list[Workload]]
    queue: Queue
    #: Amounts by resource, as the queue, or anyone, calls it.
    amounts: dict[str, int]
    flavor: str | None


def admit(
    paths: Iterable[str],
    queue: str,
    requests: Iterable[str],
    *,
    flavor: str | None = None,
    lenient: bool = False,
) -> AdmitAnswer:
    """Whether the queue can take the requests (`gpu=4`) now.

    Resources of one group must get one flavor; without `flavor` the first that fits is taken.
    """
    organisation, problems = load_valid(paths, lenient=lenient)
    question = _ask(organisation, queue, requests, flavor)
    stop = question.queue.rules.stop
    takes = stop is StopPolicy.NONE
    groups = _answer_groups(question)
    return AdmitAnswer(
        queue=queue,
        requests=question.amounts,
        held=msgspec.UNSET if takes else stop.value,
        admitted=takes and all(each.flavor for each in groups),
        groups=groups,
        problems=problem_answers(problems),
    )


def _ask(
    organisation: Organisation, name: str, requests: Iterable[str], flavor: str | None
) -> _Question:
    queues = {queue.name: queue for queue in organisation.queues}
    if name not in queues:
        raise NotFound(f"there is no queue called {name}{suggest(name, list(queues))}")
    queue = queues[name]
    if flavor is not None:
        flavors = _names_of_flavors(organisation)
        if flavor not in flavors:
            raise NotFound(f"there is no flavor called {flavor}{suggest(flavor, flavors)}")
    amounts = _parse_requests(requests, queue, organisation)
    holding: dict[str, list[Workload]] = {}
    for workload in organisation.workloads:
        if workload.admission is not None and workload.holds_quota:
            holding.setdefault(workload.admission.queue, []).append(workload)
    return _Question(build_tree(organisation), holding, queue, amounts, flavor)


def _parse_requests(
    requests: Iterable[str], queue: Queue, organisation: Organisation
) -> dict[str, int]:
    own = _names_of_resources([queue])
    everyones = _names_of_resources([*organisation.queues, *organisation.cohorts])
    amounts: dict[str, int] = {}
    for request in requests:
        name, equals, text = request.partition("=")
        if not (name and equals and text):
            raise Invalid(f"{request!r} is not a request; write it like gpu=4")
        resource = _find_resource(name, own) or _find_resource(name, everyones)
        if resource is None:
            message = f"no queue lists a resource called {name}{suggest(name, everyones)}"
            raise NotFound(message, hint=f"listed are {', '.join(everyones)}")
        if resource in amounts:
            raise Invalid(f"{resource} is requested twice")
        amount = parse_quantity(text, resource)
        if amount < 0:
            raise Invalid(f"{request!r} asks for less than none")
        amounts[resource] = amount
    return amounts


def _find_resource(name: str, known: list[str]) -> str | None:
    """A resource by its name, or by the part after the slash if only one fits."""
    if name in known:
        return name
    ending = [each for each in known if each.endswith(f"/{name}")]
    if len(ending) > 1:
        raise Invalid(f"{name} may mean {' or '.join(ending)}; write it out")
    return ending[0] if ending else None


def _names_of_resources(nodes: Iterable[Cohort | Queue]) -> list[str]:
    groups = [group for node in nodes for group in node.resource_groups]
    return list(dict.fromkeys(name for group in groups for name in group.covered_resources))


def _names_of_flavors(organisation: Organisation) -> list[str]:
    groups = [
        group
        for node in (*organisation.queues, *organisation.cohorts)
        for group in node.resource_groups
    ]
    listed = [flavor.name for group in groups for flavor in group.flavors]
    return list(dict.fromkeys([*listed, *(flavor.name for flavor in organisation.flavors)]))


def _answer_groups(question: _Question) -> list[AdmitGroup]:
    """One answer for each resource group of the queue that is asked for, and one for the rest."""
    rest = dict(question.amounts)
    asked: list[tuple[list[str], dict[str, int]]] = []
    for group in question.queue.resource_groups:
        own = {name: rest.pop(name) for name in group.covered_resources if name in rest}
        if own:
            asked.append(([flavor.name for flavor in group.flavors], own))
    wanted = question.flavor
    is_meant_for_one = any(wanted in flavors for flavors, _ in asked)
    answers: list[AdmitGroup] = []
    for flavors, own in asked:
        narrowed = wanted is not None and (wanted in flavors or not is_meant_for_one)
        answers.append(_try_flavors(question, [wanted] if wanted and narrowed else flavors, own))
    for resource, amount in rest.items():
        answers.append(_not_listed(question, resource, amount))
    return answers


def _not_listed(question: _Question, resource: str, amount: int) -> AdmitGroup:
    """A resource that the queue covers with no flavor at all cannot be had in it."""
    sentence = f"queue {question.queue.name} does not list {resource}"
    refusal = AdmitRefusal(RefusalKind.NOT_LISTED.value, sentence, resource, [])
    return AdmitGroup({resource: amount}, None, [TriedFlavor(question.flavor, refusal)])


def _try_flavors(question: _Question, flavors: list[str], amounts: Mapping[str, int]) -> AdmitGroup:
    """Try flavors in order, all resources on one of them, until they fit."""
    chosen: str | None = None
    tried: list[TriedFlavor] = []
    for flavor in flavors:
        request = {FlavorResource(flavor, name): amount for name, amount in amounts.items()}
        refusal = question.tree.refusal(question.queue.name, request)
        told = None if refusal is None else _refusal_answer(question, refusal)
        tried.append(TriedFlavor(flavor, told))
        if refusal is None:
            chosen = flavor
            break
    return AdmitGroup(dict(amounts), chosen, tried)


def _refusal_answer(question: _Question, refusal: Refusal) -> AdmitRefusal:
    what, node = refusal.flavor_resource, refusal.node
    resource = None if what is None else what.resource
    cycle = list(refusal.cycle)
    if refusal.kind is not RefusalKind.OVER_QUOTA or what is None or node is None:
        return AdmitRefusal(refusal.kind.value, refusal.sentence, resource, cycle)
    return OverQuotaRefusal(
        kind=refusal.kind.value,
        sentence=refusal.sentence,
        resource=resource,
        cycle=cycle,
        requested=refusal.requested,
        available=refusal.available,
        deficit=refusal.deficit,
        potential=refusal.potential,
        never=refusal.never,
        node=TreeNodeName(node.kind.value, node.name),
        balance=refusal.balance,
        passed=refusal.passed,
        borrowing_limit=refusal.borrowing_limit,
        holders=_holders(question, node, what),
    )


def _holders(question: _Question, node: TreeNode, what: FlavorResource) -> list[HoldingQueue]:
    """The queues that use it at the node and below, the largest first, with their workloads."""
    tree = question.tree
    queues = [each for each in tree.subtree(node) if each.kind is NodeKind.QUEUE]
    holders: list[HoldingQueue] = []
    for each in sorted(queues, key=lambda queue: (-tree.usage(queue, what), queue)):
        used = tree.usage(each, what)
        if used > 0:
            quota = tree.quota(each, what)
            holders.append(
                HoldingQueue(
                    queue=each.name,
                    used=used,
                    nominal=0 if quota is None else quota.nominal,
                    borrows=max(0, -tree.balance(each, what)),
                    workloads=_workloads(question.holding.get(each.name, []), what),
                )
            )
    return holders


def _workloads(holding: list[Workload], what: FlavorResource) -> list[HoldingWorkload]:
    amounts = [(workload, usage_of(workload).get(what, 0)) for workload in holding]
    using = [
        HoldingWorkload(workload.key, amount, workload.priority or 0)
        for workload, amount in amounts
        if amount > 0
    ]
    return sorted(using, key=lambda each: (-each.amount, each.name))
