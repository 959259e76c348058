"""Answers to questions: why something waits, and what the queues have."""

from __future__ import annotations

import time

from bough.api.kube_answers import KubeWhyAnswer
from bough.api.quota_answers import QuotaTreeAnswer
from bough.core.explain.certificate import ExplainedCycle
from bough.errors import NotFound
from bough.formats.certificates import certificate_answer
from bough.model.gang import PodState
from bough.model.pod_group import group_key, qualified
from bough.model.policy import Policy
from bough.pod_scheduler.cluster import GangKey
from bough.pod_scheduler.leadership_term import Session
from bough.pod_scheduler.status_text import no_group
from bough.tools.load_shares import fair_queues_of
from bough.tools.quota import fair_nodes, kueue_nodes

#: The reasons for objects that make no gang of ours.
BROKEN, NO_GROUP, OTHER = "invalid", "pods", "other_scheduler"


def why(session: Session, policy: Policy, kind: str, namespace: str, name: str) -> KubeWhyAnswer:
    """Why a `podgroup` or a `pod` runs or waits; `NotFound` if there is none."""
    full_name = qualified(namespace, name)
    with session.looking():
        session.take_in()
        view = session.view
        if kind == "pod":
            pod = view.pods.seen.get(full_name)
            if pod is None:
                raise NotFound(f"there is no pod {full_name}")
            if not pod.ours:
                return _short(kind, full_name, OTHER, "it is for another scheduler")
            group = pod.member.group
            if group is not None and group not in view.groups:
                told = no_group(group).message
                if pod.member.pod.state is not PodState.PENDING:
                    told = told.replace("it waits", "it is left alone", 1)
                return _short(kind, full_name, NO_GROUP, told)
            key = GangKey(group is None, full_name if group is None else group)
        else:
            # If PodGroups of both kinds have this name, the question is about KAI's.
            keys = [group_key(full_name, native=each) for each in (False, True)]
            named = next((each for each in keys if each in view.groups), None)
            if named is None:
                raise NotFound(f"there is no PodGroup {full_name}")
            key = GangKey(False, named)
        return _of_gang(session, policy, key, f"{kind}/{full_name}")


def _of_gang(session: Session, policy: Policy, key: GangKey, subject: str) -> KubeWhyAnswer:
    view = session.view
    snapshot = view.take(time.time_ns() // 1_000_000, session.progress)
    gang = view.gangs.get(key)
    if gang is None:
        if key.name in view.broken:
            text = f"PodGroup {key.name} is not valid: {view.broken[key.name]}"
            return KubeWhyAnswer(subject, BROKEN, text)
        text = "it has ended" if key.alone else "its pods are for another scheduler"
        return KubeWhyAnswer(subject, OTHER, text)
    with ExplainedCycle(snapshot, policy, session.memo) as cycle:
        found = cycle.certificate(gang.name)
    if found is None:
        return KubeWhyAnswer(subject, OTHER, "nothing is planned for it")
    blocked = session.blocked_for(gang.name)
    answer = certificate_answer(found)
    return KubeWhyAnswer(
        subject, found.reason, found.sentence, answer, [blocked] if blocked else []
    )


def queues(session: Session) -> QuotaTreeAnswer:
    """What the queues of the cluster have, use and ask for."""
    with session.looking():
        session.take_in()
        snapshot = session.view.take(time.time_ns() // 1_000_000, session.progress)
        if session.view.kueue is not None:
            nodes = kueue_nodes(snapshot)
        else:
            nodes = fair_nodes(fair_queues_of(snapshot, [])) if snapshot.queues else []
    return QuotaTreeAnswer(nodes, [])


def _short(kind: str, name: str, reason: str, sentence: str) -> KubeWhyAnswer:
    return KubeWhyAnswer(f"{kind}/{name}", reason, sentence)
