"""What a PodGroup must obey before it can be read as a gang; every rule has its own message.

Names and parents first, then the minimums. An object that says `minSubGroup` anywhere is of the
newer form: leaves count pods with `minMember`, all else counts children with `minSubGroup`. One
that does not is of the older form, where `minMember` counts children above the leaves; a PodGroup's
`minMember` above its number of children is the oldest form, and counts pods.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bough.core.gang.outline import DEFAULT_SUBGROUP, Entry, Form, Outline, find_parent, outline
from bough.core.gang.problem_list import Findings
from bough.core.gang.topology import check_constraints
from bough.core.gang.tree import MAX_DEPTH
from bough.model.gang import PodState
from bough.model.pod_group import is_native, qualified

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from bough.model.cluster import Topology
    from bough.model.gang import Pod
    from bough.model.pod_group import MemberPod, PodGroup, Templates
    from bough.model.problem import Problem

#: Where a pod says which PodGroup it belongs to, and which subgroup.
GROUP_ANNOTATION = "pod-group-name"
SUBGROUP_LABEL = "kai.scheduler/subgroup-name"

_GROUP_FIELD = ("metadata", "annotations", GROUP_ANNOTATION)
_TEMPLATE = ("spec", "podGroupTemplateRef", "workload")
_NATIVE_FIELD = ("spec", "schedulingGroup", "podGroupName")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?\Z", re.ASCII)
_RFC_1123_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\Z", re.ASCII)
_LABEL_LENGTH = 63


def check_pod_group(
    pod_group: PodGroup, topologies: Sequence[Topology] | None = None
) -> tuple[Problem, ...]:
    """Everything that is wrong with a PodGroup; `None`: topologies are not known, nor checked."""
    found = Findings(f"PodGroup/{pod_group.key}")
    shape = outline(pod_group)
    _check_names(pod_group, found)
    _check_parents(pod_group, shape, found)
    for entry in shape.entries:
        if entry.is_leaf and entry.name is None and pod_group.subgroups:
            continue  # All subgroups hang on cycles, which is said above.
        if shape.form is Form.NEWER:
            _check_newer(entry, found)
        else:
            _check_older(entry, shape, found)
    check_constraints(pod_group, shape, topologies, found)
    return tuple(found.problems)


def check_pods(pod_group: PodGroup, pods: Sequence[Pod]) -> tuple[Problem, ...]:
    """Every pod that belongs to no leaf; such a pod is never given a place."""
    shape = outline(pod_group)
    leaves = {entry.name for entry in shape.leaves}
    problems: list[Problem] = []
    for pod in pods:
        if pod.subgroup in leaves or (None in leaves and pod.subgroup == DEFAULT_SUBGROUP):
            continue
        found = Findings(f"Pod/{pod.name}")
        found.error(("metadata", "labels", SUBGROUP_LABEL), _misplaced(pod, pod_group, shape))
        problems.extend(found.problems)
    return tuple(problems)


def check_members(members: Sequence[MemberPod], pod_groups: Container[str]) -> tuple[Problem, ...]:
    """Every pod whose PodGroup does not exist."""
    problems: list[Problem] = []
    for member in members:
        if member.group is not None and member.group not in pod_groups:
            found = Findings(f"Pod/{member.pod.name}")
            runs = member.pod.state in {PodState.RUNNING, PodState.RELEASING}
            then = "the pod counts by itself" if runs else "the pod waits for it"
            message = f"there is no PodGroup {member.group!r}; {then}"
            named = _NATIVE_FIELD if is_native(member.group) else _GROUP_FIELD
            found.warn(named, message)
            problems.extend(found.problems)
    return tuple(problems)


def check_nodes(members: Iterable[MemberPod], nodes: Container[str]) -> Iterator[Problem]:
    """Every pod that holds room on a node which does not exist."""
    for pod in (member.pod for member in members):
        holds = pod.state in {PodState.RUNNING, PodState.RELEASING}
        if holds and pod.node is not None and pod.node not in nodes:
            found = Findings(f"Pod/{pod.name}")
            message = f"there is no Node {pod.node!r}; the pod counts for its queue, on no node"
            found.warn(("spec", "nodeName"), message)
            yield from found.problems


def check_templates(
    pod_groups: Sequence[PodGroup], workloads: Sequence[Templates]
) -> tuple[Problem, ...]:
    """PodGroups that name a template which their Workload does not have, or from which they differ.

    Nothing is said about a Workload that was not read.
    """
    known = {each.full_name: each for each in workloads}
    problems: list[Problem] = []
    for group in pod_groups:
        named = group.template
        workload = None if named is None else known.get(qualified(group.namespace, named.workload))
        if named is None or workload is None:
            continue
        found = Findings(f"PodGroup/{group.key}")
        of_name = {each.name: each for each in workload.groups}
        template = of_name.get(named.template)
        if template is None:
            path = (*_TEMPLATE, "podGroupTemplateName")
            has = ", ".join(of_name) or "none"
            message = f"Workload {workload.full_name} has no template {named.template!r}, but {has}"
            found.error(path, message)
        elif (differs := _differences(group, template)) != "":
            message = f"{differs} is not that of template {named.template!r}; what is here counts"
            found.warn(_TEMPLATE, message)
        problems.extend(found.problems)
    return tuple(problems)


def _differences(group: PodGroup, template: PodGroup) -> str:
    """The first field in which a PodGroup differs from its template."""
    pairs = {
        "schedulingPolicy": (group.min_member, template.min_member),
        "schedulingConstraints": (group.constraint, template.constraint),
        "priorityClassName": (group.priority_class, template.priority_class),
        "disruptionMode": (group.disrupted_whole, template.disrupted_whole),
    }
    return next((name for name, (own, its) in pairs.items() if own != its), "")


def _misplaced(pod: Pod, pod_group: PodGroup, shape: Outline) -> str:
    leaves = ", ".join(entry.name for entry in shape.leaves if entry.name is not None)
    where = f"PodGroup {pod_group.full_name}"
    if pod.subgroup is None:
        return f"is missing: {where} has subgroups, and each pod names one of {leaves}"
    if not leaves:
        return f"names the subgroup {pod.subgroup!r}, but {where} has no subgroups"
    if pod.subgroup in shape.parents:
        return f"{pod.subgroup!r} has subgroups of its own; a pod names a leaf, one of {leaves}"
    return f"{where} has no subgroup {pod.subgroup!r}; its leaves are {leaves}"


def _check_names(pod_group: PodGroup, found: Findings) -> None:
    first: dict[str, int] = {}
    for index, subgroup in enumerate(pod_group.subgroups):
        path = ("spec", "subGroups", index, "name")
        name = subgroup.name
        if name in first:
            found.error(path, f"{name!r} is the name of subGroups[{first[name]}], too")
        first.setdefault(name, index)
        if len(name) > _LABEL_LENGTH or not _LABEL_VALUE.match(name):
            found.error(
                path,
                f"{name!r} cannot be the value of a label, so no pod could name it;"
                f" use letters, digits and '-', at most {_LABEL_LENGTH}",
            )
        elif not _RFC_1123_LABEL.match(name):
            found.warn(
                path,
                f"{name!r} is no RFC 1123 label, which newer API servers demand;"
                " use lower-case letters, digits and '-'",
            )


def _check_parents(pod_group: PodGroup, shape: Outline, found: Findings) -> None:
    cycles = {cycle[0]: cycle for cycle in shape.cycles}
    for index, subgroup in enumerate(pod_group.subgroups):
        path = ("spec", "subGroups", index, "parent")
        parent = find_parent(subgroup.parent, shape.parents)
        if subgroup.parent and parent is None:
            found.error(path, f"there is no subgroup {subgroup.parent!r}")
        elif subgroup.parent and parent != subgroup.parent:
            found.warn(path, f"{subgroup.parent!r} is read as {parent!r}")
        cycle = cycles.pop(subgroup.name, None)
        if cycle is not None:
            found.error(path, f"is in a cycle: {' → '.join((*cycle, cycle[0]))}")
        if shape.depths.get(subgroup.name) == MAX_DEPTH + 1:
            found.error(path, f"is nested too deep; at most {MAX_DEPTH} levels are allowed")


def _check_newer(entry: Entry, found: Findings) -> None:
    member, children = (*entry.path, "minMember"), len(entry.children)
    if entry.min_sub_group is not None:
        if entry.min_member:
            found.error(
                member,
                f"minMember ({entry.min_member}) and minSubGroup ({entry.min_sub_group}) cannot"
                " be used together; a leaf has minMember, all else minSubGroup",
            )
        _check_min_sub_group(entry, entry.min_sub_group, found)
    elif children and entry.min_member is not None:
        found.error(
            member,
            f"is {entry.min_member} above {_subgroups(children)}: where minSubGroup is used,"
            " minMember is for leaves only; say minSubGroup here as well",
        )
    if not children and entry.min_sub_group is None:
        if entry.min_member is None:
            found.error(member, "is missing; a leaf says how many of its pods it needs")
        else:
            _check_positive(entry, found)


def _check_min_sub_group(entry: Entry, value: int, found: Findings) -> None:
    path, children = (*entry.path, "minSubGroup"), len(entry.children)
    if not children:
        what = "the PodGroup" if entry.name is None else repr(entry.name)
        found.error(
            path, f"counts child subgroups, but {what} has none; use minMember to count pods"
        )
    elif value > children:
        found.error(path, f"is {value}, but {_only(children)}")
    if value < 1:
        found.error(path, f"is {value}, but must be greater than 0; leave it out to need all")


def _check_older(entry: Entry, shape: Outline, found: Findings) -> None:
    path, children = (*entry.path, "minMember"), len(entry.children)
    if entry.min_member is None:
        if not children and entry.name is not None:
            found.warn(path, "is missing; one pod is taken to be enough")
        return
    _check_positive(entry, found)
    if entry.min_member < 1 or not children:
        return
    if entry.min_member <= children:
        found.warn(
            path,
            f"counts the {_subgroups(children)}, an older form;"
            f" write minSubGroup: {entry.min_member} instead",
        )
    elif entry.name is None:
        _check_oldest(entry, entry.min_member, shape, found)
    else:
        found.error(
            path,
            f"is {entry.min_member}, but {_only(children)},"
            " which is what minMember counts above the leaves",
        )


def _check_oldest(gang: Entry, value: int, shape: Outline, found: Findings) -> None:
    path, children = (*gang.path, "minMember"), len(gang.children)
    pods = sum(max(leaf.min_member or 0, 1) for leaf in shape.leaves)
    if value <= pods:
        found.warn(
            path,
            f"is {value} with {_subgroups(children)}: it is taken to count pods, the oldest form,"
            " and all subgroups are needed; leave it out, or use minSubGroup to need fewer",
        )
    else:
        found.error(
            path,
            f"is {value}, but {_only(children)} to count, and the leaves need no more than"
            f" {pods} {'pod' if pods == 1 else 'pods'}",
        )


def _check_positive(entry: Entry, found: Findings) -> None:
    if entry.min_member is not None and entry.min_member < 1:
        found.error(
            (*entry.path, "minMember"), f"is {entry.min_member}, but must be greater than 0"
        )


def _subgroups(count: int) -> str:
    return f"{count} child subgroup{'' if count == 1 else 's'}"


def _only(count: int) -> str:
    return f"there {'is' if count == 1 else 'are'} only {_subgroups(count)}"
