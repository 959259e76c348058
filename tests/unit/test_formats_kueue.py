"""Objects of Kueue in all their spellings."""

from __future__ import annotations

from fractions import Fraction

import pytest

from bough.model.admission_rules import (
    AdmissionCheck,
    AdmissionMode,
    AdmissionRules,
    BorrowWithinCohort,
    ConcurrentAdmission,
    FlavorFungibility,
    FlavorPreference,
    FlavorSearch,
    MigrationMode,
    Preemption,
    PreemptionWithinQueue,
    QueueingStrategy,
    ReclaimWithinCohort,
    StopPolicy,
)
from bough.model.cluster import Match, Taint, TaintEffect, Toleration
from bough.model.quota import Cohort, FlavorQuotas, Queue, Quota, ResourceGroup
from bough.model.workload import (
    Flavor,
    LocalQueue,
)
from tests.kueue_text import API, read, read_clean


def test_a_cohort_is_read_with_its_quotas():
    text = (
        API
        + """\
kind: Cohort
metadata: {name: research}
spec:
  parentName: company
  fairSharing: {weight: 0.75}
  resourceGroups:
  - coveredResources: [cpu, memory]
    flavors:
    - name: default
      resources:
      - {name: cpu, nominalQuota: 1.5, borrowingLimit: 500m, lendingLimit: 0}
      - {name: memory, nominalQuota: 16Gi}
"""
    )
    quotas = {"cpu": Quota(1500, 500, 0), "memory": Quota(16 << 30)}
    groups = (ResourceGroup(("cpu", "memory"), (FlavorQuotas("default", quotas),)),)
    assert read_clean(text).organisation.cohorts == (
        Cohort("research", "company", groups, Fraction(3, 4)),
    )


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1", "v1beta2"])
@pytest.mark.parametrize("field", ["parent", "parentName"])
def test_a_cohort_s_parent_has_two_names(version: str, field: str):
    text = f"apiVersion: kueue.x-k8s.io/{version}\nkind: Cohort\nmetadata: {{name: a}}\n"
    organisation = read_clean(f"{text}spec: {{{field}: b}}").organisation
    assert organisation.cohorts == (Cohort("a", "b"),)


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
@pytest.mark.parametrize("field", ["cohort", "cohortName"])
def test_a_queue_s_cohort_has_two_names(version: str, field: str):
    text = f"apiVersion: kueue.x-k8s.io/{version}\nkind: ClusterQueue\nmetadata: {{name: a}}\n"
    organisation = read_clean(f"{text}spec: {{{field}: b}}").organisation
    assert organisation.queues == (Queue("a", "b"),)


@pytest.mark.parametrize("spec", ["", "spec: {}", "spec: {parentName: ''}", "spec: null"])
def test_a_cohort_may_say_nothing(spec: str):
    organisation = read_clean(f"{API}kind: Cohort\nmetadata: {{name: a}}\n{spec}").organisation
    assert organisation.cohorts == (Cohort("a"),)


def test_a_queue_is_read_with_its_rules():
    text = (
        API
        + """\
kind: ClusterQueue
metadata: {name: a}
spec:
  queueingStrategy: StrictFIFO
  namespaceSelector:
    matchLabels: {team: x}
    matchExpressions:
    - {key: env, operator: NotIn, values: [test]}
  flavorFungibility:
    whenCanBorrow: TryNextFlavor
    whenCanPreempt: TryNextFlavor
    preference: PreemptionOverBorrowing
  preemption:
    withinClusterQueue: LowerOrNewerEqualPriority
    reclaimWithinCohort: Any
    borrowWithinCohort: {policy: LowerPriority, maxPriorityThreshold: 100}
  admissionChecksStrategy:
    admissionChecks:
    - {name: budget, onFlavors: [h100]}
  stopPolicy: Hold
  admissionScope: {admissionMode: UsageBasedAdmissionFairSharing}
  concurrentAdmissionPolicy:
    migration:
      mode: RetainFirstAdmission
      constraints: {lastAcceptableFlavorName: a100}
status: {pendingWorkloads: 3}
"""
    )
    (queue,) = read_clean(text).organisation.queues
    assert queue.rules == AdmissionRules(
        queueing=QueueingStrategy.STRICT_FIFO,
        namespaces=(Match("team", "In", ("x",)), Match("env", "NotIn", ("test",))),
        fungibility=FlavorFungibility(
            FlavorSearch.TRY_NEXT_FLAVOR,
            FlavorSearch.TRY_NEXT_FLAVOR,
            FlavorPreference.PREEMPTION_OVER_BORROWING,
        ),
        preemption=Preemption(
            PreemptionWithinQueue.LOWER_OR_NEWER_EQUAL_PRIORITY,
            ReclaimWithinCohort.ANY,
            BorrowWithinCohort.LOWER_PRIORITY,
            100,
        ),
        checks=(AdmissionCheck("budget", ("h100",)),),
        stop=StopPolicy.HOLD,
        mode=AdmissionMode.USAGE_BASED,
        concurrent=ConcurrentAdmission(MigrationMode.RETAIN_FIRST_ADMISSION, "a100"),
    )


@pytest.mark.parametrize(
    ("selector", "namespaces"),
    [("", None), ("namespaceSelector: {}", ()), ("namespaceSelector: null", None)],
)
def test_no_namespace_selector_lets_no_namespace_in_and_an_empty_one_lets_all_in(
    selector: str, namespaces: tuple[Match, ...] | None
):
    text = f"{API}kind: ClusterQueue\nmetadata: {{name: a}}\nspec: {{{selector}}}"
    (queue,) = read_clean(text).organisation.queues
    assert queue.rules.namespaces == namespaces


def test_the_old_words_of_flavor_fungibility_and_checks_are_read():
    text = (
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: a}\nspec:\n"
        "  flavorFungibility: {whenCanBorrow: Borrow, whenCanPreempt: Preempt}\n"
        "  admissionChecks: [budget]\n"
    )
    (queue,) = read_clean(text).organisation.queues
    stop = FlavorSearch.MAY_STOP_SEARCH
    assert queue.rules.fungibility == FlavorFungibility(stop, stop)
    assert queue.rules.checks == (AdmissionCheck("budget"),)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("queueingStrategy", "FIFO"),
        ("stopPolicy", "Stop"),
        ("preemption: {withinClusterQueue", "Any}"),
        ("preemption: {reclaimWithinCohort", "LowerOrNewerEqualPriority}"),
        ("preemption: {borrowWithinCohort: {policy", "Any}}"),
        ("flavorFungibility: {whenCanBorrow", "Preempt}"),
        ("flavorFungibility: {whenCanPreempt", "Borrow}"),
        ("flavorFungibility: {preference", "Both}"),
        ("admissionScope: {admissionMode", "Fair}"),
        ("concurrentAdmissionPolicy: {migration: {mode", "Never}}"),
    ],
)
def test_a_word_that_is_not_in_the_list_is_an_error(field: str, value: str):
    text = f"{API}kind: ClusterQueue\nmetadata: {{name: a}}\nspec: {{{field}: {value}}}"
    (problem,) = read(text).problems
    assert problem.message.startswith("expected one of ")
    assert value.rstrip("}") in problem.message


def test_a_flavor_is_read():
    text = (
        API
        + """\
kind: ResourceFlavor
metadata: {name: h100}
spec:
  nodeLabels: {gpu: h100}
  nodeTaints: [{key: gpu, value: h100, effect: NoExecute, timeAdded: "2026-01-01T00:00:00Z"}]
  tolerations: [{key: gpu, operator: Exists, effect: "", tolerationSeconds: 5}]
  topologyName: racks
"""
    )
    assert read_clean(text).organisation.flavors == (
        Flavor(
            "h100",
            {"gpu": "h100"},
            (Taint("gpu", "h100", TaintEffect.NO_EXECUTE),),
            (Toleration("gpu", "Exists"),),
            "racks",
        ),
    )


def test_a_local_queue_is_read_into_the_default_namespace():
    spec = "{clusterQueue: b, stopPolicy: HoldAndDrain}"
    text = f"{API}kind: LocalQueue\nmetadata: {{name: a}}\nspec: {spec}"
    assert read_clean(text).organisation.local_queues == (
        LocalQueue("a", "default", "b", StopPolicy.HOLD_AND_DRAIN),
    )
