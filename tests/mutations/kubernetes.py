"""What may go wrong on clusters: pods, queues, the webhook."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = (
    Mutation(
        "a watch that is silent goes on from a version that is not there yet",
        '            except Silent as silent:\n                self._version = ""\n',
        "            except Silent as silent:\n",
        "tests/unit/test_kube_watching.py -k silent",
    ),
    Mutation(
        "a leader that was replaced writes over the decisions of the next one",
        "return there is not None and own is not None and there.term > own.term",
        "return False",
        "tests/unit/test_pod_scheduler_decision_records.py -k earlier_term",
    ),
    Mutation(
        "what is half bound is forgotten when more is decided",
        "if courses[group] is Course.UNFINISHED and self.of(group) is each",
        "if False",
        "tests/unit/test_pod_scheduler_decision_records.py -k not_finished",
    ),
    Mutation(
        "pods are watched while all that happens is their bind",
        "self._wait_while(self._busy, YIELDS_S)",
        "self._wait_while(self._busy, 0.0)",
        "tests/unit/test_kube_watching.py -k urgent",
    ),
    Mutation(
        "queues of a cluster grow before others shrink",
        "return Phase.LEAVES_GROW if moved or grows else Phase.LEAVES_SHRINK",
        "return Phase.LEAVES_SHRINK",
        "tests/property/test_object_changes.py",
    ),
    Mutation(
        "objects of others with our name are changed",
        "if there is None or self._owner.owns(there.metadata):",
        "if True:",
        "tests/property/test_object_changes.py",
    ),
    Mutation(
        "a queue goes while pods name it",
        "if not below[name] and name not in self._used.queues:",
        "if not below[name]:",
        "tests/property/test_object_changes.py",
    ),
    Mutation(
        "what KAI evicted counts as lost",
        "elif seen.sight is Sight.LOST and not self.told and (why := self.taken_for):",
        "elif False and (why := self.taken_for):",
        "tests/unit/test_kai_gangs.py",
    ),
    Mutation(
        "what people delete soon after an eviction counts as evicted",
        "return message if after_creation and apart_ms",
        "return message if apart_ms",
        "tests/unit/test_kai_gangs.py",
    ),
    Mutation(
        "a gang waits for pods of a JobSet that have completed",
        "_pods_of_job(written.template.spec, 0)) - progress.spared)",
        "_pods_of_job(written.template.spec, 0)))",
        "tests/unit/test_pod_grouper_progress.py",
    ),
    Mutation(
        "a PodGroup is made of an owner that describes none",
        "    if problem is not None:\n        raise Invalid",
        "    if False:\n        raise Invalid",
        "tests/unit/test_pod_grouper_progress.py",
    ),
    Mutation(
        "a pod that waits for KAI is given up as one that does not start",
        "if self.pod is not None and not self.node:\n",
        "if False:\n",
        "tests/unit/test_kai_gangs.py",
    ),
    Mutation(
        "a leader of pods relies on its lease for longer than others wait for it",
        "self._held_until_s = asked_s + self.times.relied_s",
        "self._held_until_s = asked_s + 2 * self.times.duration_s",
        "tests/unit/test_pod_scheduler.py",
    ),
    Mutation(
        "pods of a gang are bound although the decision could not be recorded",
        "            if not result.message or not batch.decision:\n",
        "            if True:\n",
        "tests/unit/test_pod_scheduler_decision_records.py",
    ),
    Mutation(
        "what was bound does not count before the watch says so",
        "if bound is not None and inner.node is None:",
        "if False:",
        "tests/unit/test_pod_scheduler.py",
    ),
    Mutation(
        "a decision of the leader before is finished where there is no room",
        "if _is_short(rest[each.node]):",
        "if False:",
        "tests/unit/test_pod_scheduler.py",
    ),
    Mutation(
        "pods of other schedulers hold no room",
        "        if holds_room(member.pod):\n            self._strangers.put(",
        "        if False:\n            self._strangers.put(",
        "tests/property/test_pod_scheduler_cluster.py",
    ),
    Mutation(
        "a right that is missing is asked for without a pause",
        " and refused.status != FORBIDDEN\n",
        "\n",
        "tests/unit/test_pod_scheduler.py -k want_of_a_right",
    ),
    Mutation(
        "an object that cannot be read hides all of its kind",
        "        if not kind.optional:\n            raise\n    page",
        "        raise\n    page",
        "tests/unit/test_pod_scheduler.py -k hides_no_others",
    ),
    Mutation(
        "what others free room for holds nothing",
        "        elif pod.expected_at and not pod.ours:\n",
        "        elif False:\n",
        "tests/property/test_pod_scheduler_cluster.py",
    ),
    Mutation(
        "a connection to Kubernetes that may not be verified is made",
        "    if cluster.insecure_skip_tls_verify:\n",
        "    if False:\n",
        "tests/unit/test_kubeconfig.py",
    ),
    Mutation(
        "a version that the apiserver forgot is watched again",
        'self._kind.plural, gone.message)\n                self._version = ""\n',
        "self._kind.plural, gone.message)\n",
        "tests/unit/test_kube_watching.py -k too_old_makes",
    ),
    Mutation(
        "a pod is given up that an apiserver forbids while it starts",
        "            if not self._client.is_ready():\n",
        "            if False:\n",
        "tests/unit/test_kubernetes_creation.py -k forbidden",
    ),
    Mutation(
        "under another lease a pod is created that was not ordered under it",
        "                        each.objects = None\n",
        "                        pass\n",
        "tests/unit/test_kubernetes_creation.py -k another_lease",
    ),
    Mutation(
        "on Kubernetes what failed stays on the claim",
        "return self.over and not self.sight.completed",
        "return False",
        "tests/unit/test_kubernetes_data.py",
    ),
    Mutation(
        "on Kubernetes a pod is taken for a task by its labels alone",
        "    return attempt if is_own else",
        "    return attempt if True else",
        "tests/unit/test_kubernetes_manifest.py -k labels_of_a_workflow",
    ),
    Mutation(
        "on Kubernetes what went while no server ran stays on the claim",
        "not (self.unseen or DATA in labels)",
        "not (DATA in labels)",
        "tests/unit/test_kubernetes_data.py -k gone_before",
    ),
)
