"""Clusters whose definitions vanish, whose rules refuse what is ours, and whose names are taken."""

from __future__ import annotations

from typing import Any

from bough.backends.kubernetes.names import SITE
from bough.kube.client import KubeClient
from bough.kube.failures import KubeNotFound, KubeRefused
from bough.kube.objects import Kind, untyped
from tests.kubernetes.kai.clusters import DEFINITIONS, KINDS, define
from tests.kubernetes.kai.story import Story
from tests.kubernetes.waiting import wait_for

VANISHING = ("queues.scheduling.run.ai", "podgroups.scheduling.run.ai", "topologies.kai.scheduler")
_ADMISSION = "apis/admissionregistration.k8s.io/v1"
POLICIES: Kind[dict[str, Any]] = untyped(
    _ADMISSION, "validatingadmissionpolicies", namespaced=False
)
BINDINGS: Kind[dict[str, Any]] = untyped(
    _ADMISSION, "validatingadmissionpolicybindings", namespaced=False
)


def are_gone(admin: KubeClient) -> bool:
    try:
        admin.list(KINDS["Queue"])
        admin.list(KINDS["PodGroup"])
    except KubeNotFound:
        return True
    return False


def test_definitions_that_vanish_take_no_work_with_them_and_all_is_made_again(story: Story):
    server, admin = story.server, story.admin
    server.pool("team", 8)
    server.done("pool", "subpool", "create", "team", "a", "--quota", "3")
    story.expect(team=8, team__shared=5, team__a=3)
    runs = story.run("team--a", 2, "NORMAL")
    (pod,) = story.pods(runs)
    for name in VANISHING:
        admin.delete(DEFINITIONS, name)
    wait_for(lambda: are_gone(admin), "the definitions to be gone")
    lacks = "The cluster lacks something that KAI installs"
    wait_for(lambda: any(lacks in each for each in story.drift()["troubles"]), "the trouble")
    # What is admitted meanwhile waits, and what is divided meanwhile holds.
    waits = server.submit("team", 1, "NORMAL")
    server.done("pool", "subpool", "update", "team", "a", "--quota", "4")
    assert "RUNNING" == server.status(runs)
    assert pod["metadata"]["uid"] == story.pods(runs)[0]["metadata"]["uid"]

    define(admin)

    story.expect(team=8, team__shared=4, team__a=4)
    wait_for(lambda: [] == story.drift()["troubles"], "the end of all troubles")
    story.kai.bind(*story.pods(waits))
    server.settle(RUNNING=[runs, waits])
    # Both gangs have their PodGroup, and the one that ran is the pod that it was.
    for name in (runs, waits):
        assert story.kai.group_of(story.pods(name)[0])
    assert pod["metadata"]["uid"] == story.pods(runs)[0]["metadata"]["uid"]
    assert [0] == [each.retry for each in server.attempts(runs)]


def test_what_rules_of_a_cluster_refuse_is_told_and_stops_no_other_pool(story: Story):
    server, admin = story.server, story.admin
    for name in ("one", "two"):
        server.pool(name, 8)
    story.expect(one=8, one__shared=8, two=8, two__shared=8)
    refuse(admin, f"{story.prefix}one--a")
    try:
        for name in ("one", "two"):
            server.done("pool", "subpool", "create", name, "a", "--quota", "3")
        story.expect(one=8, one__shared=5, two=8, two__shared=5, two__a=3)
        said = f"Queue {story.prefix}one--a is refused"
        wait_for(lambda: any(said in each for each in story.drift()["troubles"]), "the trouble")
        server.done("pool", "subpool", "update", "two", "a", "--quota", "6")
        story.expect(one=8, one__shared=5, two=8, two__shared=2, two__a=6)
    finally:
        admin.delete(BINDINGS, "refuse")
        admin.delete(POLICIES, "refuse")
    story.expect(one=8, one__shared=5, one__a=3, two=8, two__shared=2, two__a=6)
    wait_for(lambda: [] == story.drift()["troubles"], "the end of all troubles")
    assert [] == story.drift()["repairs"]


def test_a_pod_group_that_became_that_of_others_is_named_left_alone_and_outlives_its_gang(
    story: Story,
):
    server, admin, where = story.server, story.admin, story.host.namespace
    server.pool("team", 8)
    runs = story.run("team", 2, "NORMAL")
    group = story.kai.group_of(story.pods(runs)[0])
    name = group["metadata"]["name"]

    admin.patch(KINDS["PodGroup"], name, {"metadata": {"labels": {SITE: "others"}}}, where)

    said = f"PodGroup {name} is not of this site, and is left as it is."
    wait_for(lambda: said in story.drift()["troubles"], "the trouble")
    theirs = admin.get(KINDS["PodGroup"], name, where)
    other = story.run("team", 1, "NORMAL")
    server.finish(runs, other)
    assert theirs == admin.get(KINDS["PodGroup"], name, where)
    wait_for(lambda: [] == story.drift()["troubles"], "the end of all troubles")
    admin.delete(KINDS["PodGroup"], name, where)


def refuse(admin: KubeClient, name: str) -> None:
    """A rule of the cluster: no Queue may have a name; it takes a moment until it is kept."""
    rule = {
        "apiGroups": ["scheduling.run.ai"],
        "apiVersions": ["*"],
        "resources": ["queues"],
        "operations": ["CREATE"],
    }
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": f"object.metadata.name != '{name}'", "message": "not here"}],
    }
    body = {"kind": "ValidatingAdmissionPolicy", "metadata": {"name": "refuse"}, "spec": spec}
    admin.create(POLICIES, {"apiVersion": "admissionregistration.k8s.io/v1", **body})
    bound = {"policyName": "refuse", "validationActions": ["Deny"]}
    body = {"kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "refuse"}}
    admin.create(BINDINGS, {"apiVersion": "admissionregistration.k8s.io/v1", **body, "spec": bound})
    # An object that is not valid would be refused with or without the rule.
    share = {"quota": 0, "limit": 0, "overQuotaWeight": 0}
    resources = dict.fromkeys(("cpu", "gpu", "memory"), share)
    probe = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}}

    def is_kept() -> bool:
        target = "/apis/scheduling.run.ai/v2/queues?dryRun=All"
        try:
            admin.ask("POST", target, {**probe, "spec": {"resources": resources}})
        except KubeRefused as error:
            return "not here" in error.message
        return False

    wait_for(is_kept, "the rule")
