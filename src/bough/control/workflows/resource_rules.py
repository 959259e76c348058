"""Rules of pools and platforms for what tasks may request: OSMO's resource validations. Pure.

A rule compares two operands, which may contain variables as pod templates do: USER_CPU, USER_GPU,
USER_MEMORY and USER_STORAGE are what the task requests, K8_CPU and so on what a node has. All rules
with variables of nodes must hold together on at least one node. A rule about something unknown
holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction

from bough.control.config.template_variables import (
    UnknownVariable,
    Value,
    amounts,
    fill,
    variables_of,
    with_parts,
)
from bough.model.pool import Comparison, OfferedNode, Pool, ResourceAssertion
from bough.model.workflow import TaskSpec

_NODE = re.compile(r"\bK8_")
_AMOUNT = re.compile(r"\s*(-?[0-9]+(?:\.[0-9]+)?)\s*(B|Ki|Mi|Gi|Ti)?\s*")
_SIZES = {None: 1, "B": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def rule_fault(
    pool: Pool,
    task: TaskSpec,
    validations: Mapping[str, tuple[ResourceAssertion, ...]],
    nodes: Iterable[OfferedNode],
) -> str | None:
    """The message of the first rule, of the pool or the task's platform, that a task breaks."""
    chosen = task.platform or pool.default_platform
    platform = pool.platforms.get(chosen or "")
    names = (
        *pool.common_resource_validations,
        *(() if platform is None else platform.resource_validations),
    )
    rules = [rule for name in names for rule in validations.get(name, ())]
    if not rules:
        return None
    own = {} if platform is None else platform.default_variables
    defaults = {**pool.common_default_variables, **own}
    asked = amounts(task.requests, task.storage_bytes)
    variables = variables_of(asked, {}, task.nodes_excluded, defaults)
    broken = _broken([rule for rule in rules if not _about_nodes(rule)], variables)
    if broken is None:
        here = [node for node in nodes if node.platform in (None, chosen)]
        broken = _broken_on_all([rule for rule in rules if _about_nodes(rule)], variables, here)
    return None if broken is None else f"Resource validation failed for task {task.name}: {broken}"


def _about_nodes(rule: ResourceAssertion) -> bool:
    return any(_NODE.search(each) for each in (rule.left_operand, rule.right_operand))


def _broken_on_all(
    rules: list[ResourceAssertion], variables: Mapping[str, Value], nodes: Iterable[OfferedNode]
) -> str | None:
    """What fails on the first node, the largest; `None`: all rules hold on some node."""
    first: str | None = None
    for node in nodes if rules else ():
        has = amounts(node, node.storage_bytes)
        of_node = with_parts({f"K8_{name}": value for name, value in has.items()})
        broken = _broken(rules, {**variables, **of_node})
        if broken is None:
            return None
        first = first or broken
    return first


def _broken(rules: Iterable[ResourceAssertion], variables: Mapping[str, Value]) -> str | None:
    for rule in rules:
        try:
            left, right = (
                str(fill(operand, variables)) for operand in (rule.left_operand, rule.right_operand)
            )
        except UnknownVariable:
            continue
        if not _holds(rule.operator, left, right):
            return _message(rule, variables, left, right)
    return None


def _holds(operator: Comparison, left: str, right: str) -> bool:
    one, other = _number(left), _number(right)
    if one is None or other is None:
        # Words cannot be compared by size.
        return operator is Comparison.EQ and left.strip() == right.strip()
    return {
        Comparison.GT: one > other,
        Comparison.GE: one >= other,
        Comparison.LT: one < other,
        Comparison.LE: one <= other,
        Comparison.EQ: one == other,
    }[operator]


def _number(text: str) -> Fraction | None:
    found = _AMOUNT.fullmatch(text)
    return None if found is None else Fraction(found[1]) * _SIZES[found[2]]


def _message(rule: ResourceAssertion, variables: Mapping[str, Value], left: str, right: str) -> str:
    if not rule.assert_message:
        return f"{rule.left_operand} is {left}, and must be {rule.operator} {right}."
    try:
        return str(fill(rule.assert_message, variables))
    except UnknownVariable:
        return rule.assert_message
