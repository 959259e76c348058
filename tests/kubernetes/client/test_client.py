"""The calls of the client, answered by a real apiserver."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bough.kube.client import KubeClient, Patch
from bough.kube.decoding import WatchEventKind
from bough.kube.failures import (
    AlreadyExists,
    Busy,
    KubeConflict,
    KubeNotFound,
    KubeRefused,
    Unreachable,
)
from bough.kube.kubeconfig import find_access
from bough.kube.objects import PODS, SERVICES, untyped
from tests.kubernetes.bed.certificates import write_certificates
from tests.kubernetes.bed.cluster import ADMIN_TOKEN, Bed
from tests.kubernetes.bed.objects import pod
from tests.kubernetes.waiting import wait_for

BUDGETS = untyped("apis/policy/v1", "poddisruptionbudgets")


def test_a_second_creation_of_a_name_is_refused_and_changes_nothing(
    client: KubeClient, fresh: str
) -> None:
    made = client.create(PODS, pod("a", "node-0"), fresh)

    with pytest.raises(AlreadyExists):
        client.create(PODS, pod("a", "node-1"), fresh)

    seen = client.get(PODS, "a", fresh)
    assert (made.metadata.uid, "node-0") == (seen.metadata.uid, seen.spec.node_name)


def test_of_many_that_create_the_same_name_at_once_one_does(client: KubeClient, fresh: str) -> None:
    outcomes: list[str] = []

    def create(number: int) -> None:
        try:
            client.create(PODS, pod("a", f"node-{number % 4}"), fresh)
            outcomes.append("made")
        except AlreadyExists:
            outcomes.append("there")

    threads = [threading.Thread(target=create, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ["made"] + ["there"] * 19 == sorted(outcomes)
    assert 1 == len(client.list(PODS, fresh).items)


def test_a_pod_is_bound_once(client: KubeClient, fresh: str) -> None:
    made = client.create(PODS, pod("a"), fresh)

    with pytest.raises(KubeConflict):
        client.bind("a", fresh, "node-1", uid="another-pod-of-this-name")
    client.bind("a", fresh, "node-1", uid=made.metadata.uid)
    with pytest.raises(KubeConflict, match="already assigned"):
        client.bind("a", fresh, "node-2")

    assert "node-1" == client.get(PODS, "a", fresh).spec.node_name


def test_a_pod_is_deleted_by_its_uid_alone(client: KubeClient, fresh: str) -> None:
    made = client.create(PODS, pod("a"), fresh)

    with pytest.raises(KubeConflict):
        client.delete(PODS, "a", fresh, uid="another-pod-of-this-name")
    client.delete(PODS, "a", fresh, uid=made.metadata.uid, grace_s=0)
    with pytest.raises(KubeNotFound):
        client.delete(PODS, "a", fresh)


def test_an_eviction_ends_a_pod_unless_a_budget_forbids_it(client: KubeClient, fresh: str) -> None:
    for name in ("free", "kept"):
        body = pod(name, "node-0")
        body["metadata"]["labels"] = {"app": name}
        client.create(PODS, body, fresh)
        wait_for(lambda name=name: client.get(PODS, name, fresh).status.phase == "Running")
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "kept"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}},
    }
    client.create(BUDGETS, budget, fresh)

    client.evict("free", fresh)
    with pytest.raises(Busy):
        client.evict("kept", fresh)

    wait_for(lambda: ["kept"] == [each.metadata.name for each in client.list(PODS, fresh).items])


def test_a_patch_changes_what_it_names(client: KubeClient, fresh: str) -> None:
    client.create(PODS, pod("a"), fresh)

    client.patch(PODS, "a", {"metadata": {"labels": {"x": "y"}}}, fresh)
    json_patch = [{"op": "add", "path": "/metadata/labels/z", "value": "w"}]
    seen = client.patch(PODS, "a", json_patch, fresh, Patch.JSON)

    assert {"x": "y", "z": "w"} == seen.metadata.labels


def test_a_replacement_of_an_older_version_is_refused(client: KubeClient, fresh: str) -> None:
    maps = untyped("api/v1", "configmaps")
    made = client.create(maps, {"metadata": {"name": "a"}, "data": {"x": "1"}}, fresh)
    client.replace(maps, "a", {**made, "data": {"x": "2"}}, fresh)

    with pytest.raises(KubeConflict):
        client.replace(maps, "a", {**made, "data": {"x": "3"}}, fresh)


def test_a_list_of_more_than_a_page_is_whole(client: KubeClient, fresh: str) -> None:
    names = [f"s-{number:04}" for number in range(520)]
    for name in names:
        client.create(SERVICES, {"metadata": {"name": name}, "spec": {"clusterIP": "None"}}, fresh)

    listing = client.list(SERVICES, fresh)

    assert names == sorted(each.metadata.name for each in listing.items)


def test_selectors_choose_by_label_and_by_field(client: KubeClient, fresh: str) -> None:
    for number in range(4):
        body = pod(f"p-{number}", f"node-{number % 2}")
        body["metadata"]["labels"] = {"bough.site": "ours" if number < 3 else "theirs"}
        client.create(PODS, body, fresh)

    by_label = client.list(PODS, fresh, labels="bough.site=ours").items
    by_both = client.list(PODS, fresh, "bough.site=ours", "spec.nodeName=node-0").items

    assert ["p-0", "p-1", "p-2"] == sorted(each.metadata.name for each in by_label)
    assert ["p-0", "p-2"] == sorted(each.metadata.name for each in by_both)


def test_a_watch_tells_what_happens_after_a_version(client: KubeClient, fresh: str) -> None:
    headless = {"clusterIP": "None"}
    client.create(SERVICES, {"metadata": {"name": "before"}, "spec": headless}, fresh)
    version = client.list(SERVICES, fresh).version
    client.create(SERVICES, {"metadata": {"name": "a"}, "spec": headless}, fresh)
    client.patch(SERVICES, "a", {"metadata": {"labels": {"x": "y"}}}, fresh)
    client.delete(SERVICES, "a", fresh)

    told = []
    for event in client.watch(SERVICES, version, fresh):
        told.append((event.kind, event.object.metadata.name))
        if event.kind is WatchEventKind.DELETED:
            break

    kinds = (WatchEventKind.ADDED, WatchEventKind.MODIFIED, WatchEventKind.DELETED)
    assert [(kind, "a") for kind in kinds] == told


def test_a_watch_without_events_ends_when_it_was_asked_to(client: KubeClient, fresh: str) -> None:
    version = client.list(PODS, fresh).version

    kinds = {event.kind for event in client.watch(PODS, version, fresh, timeout_s=2)}

    assert kinds <= {WatchEventKind.BOOKMARK}


def test_a_log_that_is_followed_ends_when_it_is_closed(client: KubeClient, fresh: str) -> None:
    client.create(PODS, pod("a", "node-0"), fresh)
    wait_for(lambda: client.get(PODS, "a", fresh).status.phase == "Running", "a running pod")
    streams = []
    lines = client.log("a", fresh, "main", follow=True, opened=streams.append)

    assert next(lines).endswith(b" a line of the bed\n")
    threading.Thread(target=lambda: (time.sleep(0.2), streams[0].close())).start()

    assert [] == list(lines)


def test_a_certificate_proves_who_we_are(bed: Bed, connect: Callable[..., KubeClient]) -> None:
    folder = bed.folder
    user = {"client-certificate": f"{folder}/client.crt", "client-key": f"{folder}/client.key"}
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}

    client = connect(bed.write_kubeconfig("by-certificate", **user))

    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    assert "client" == client.ask("POST", path, asked)["status"]["userInfo"]["username"]


def test_a_token_that_is_not_accepted_is_refused_until_the_file_has_another(
    bed: Bed, connect: Callable[..., KubeClient], tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("wrong")
    client = connect(bed.write_kubeconfig("by-file", tokenFile=str(token)))

    with pytest.raises(KubeRefused) as raised:
        client.list(PODS)
    assert 401 == raised.value.status
    token.write_text(ADMIN_TOKEN)

    assert client.list(PODS).version


def test_an_apiserver_of_another_authority_is_not_spoken_to(bed: Bed, tmp_path: Path) -> None:
    write_certificates(tmp_path, "other")
    text = bed.kubeconfig.read_text().replace(str(bed.authority), str(tmp_path / "other-ca.crt"))
    (tmp_path / "config").write_text(text)
    client = KubeClient(find_access(str(tmp_path / "config"), None, {}))

    with pytest.raises(Unreachable, match="not trusted") as raised:
        client.list(PODS)
    assert not raised.value.sent
