"""Asks every route of a site that has something of everything, so that each succeeds."""

from __future__ import annotations

import hashlib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from bough.api.pool_data import SentPart, write_part
from bough.backends.local.options import LocalOptions
from bough.backends.local.pool_data.pool_store import LocalPoolData
from bough.control.nodes import node_sync
from bough.model.result import FilePart, KeptFile, KeptFiles
from tests.api.house import House, spec

ELASTIC = """\
workflow:
  name: elastic
  resources:
    default: {gpu: 1, cpu: 1, memory: 1Gi, storage: 1Gi}
  groups:
  - name: workers
    minMember: 2
    tasks:
    - {name: lead, image: i, lead: true}
    - {name: second, image: i}
    - {name: third, image: i}
"""
POOL = {
    "description": "all fields",
    "resources": {"gpu": {"guarantee": 0, "maximum": 8, "weight": 2}},
    "platforms": {"a100": {"description": "large", "default_mounts": ["/data"]}},
    "default_platform": "a100",
    "default_exec_timeout": "1h",
    "default_exit_actions": {"RESCHEDULE": "1"},
    "topology_keys": [{"key": "rack", "label": "topology/rack"}],
    "cohort": "org",
    "borrowing_limit": 4,
}
ROLE = {
    "description": "d",
    "policies": [{"effect": "Allow", "actions": ["pool:*"], "resources": ["pool/team"]}],
}


class OneResult:
    """Results that every task is said to have left."""

    FILE = KeptFile("folder/file", 1, "1-2-3", 0)

    def list_files(self, *_: Any) -> KeptFiles:
        return KeptFiles((self.FILE,), more=False, left_out=1)

    def read_part(self, *_: Any) -> FilePart:
        return FilePart(b"x", self.FILE)


class Visited(NamedTuple):
    """A request that was answered."""

    method: str
    #: The path as it is declared.
    template: str
    path: str
    response: Any


class Tour:
    """Asks one route after the other."""

    def __init__(self, house: House) -> None:
        self._house = house
        self.seen: list[Visited] = []

    def ask(
        self, method: str, template: str, query: str = "", body: Any = None, **names: str
    ) -> Any:
        path = template.format(**names)
        options: dict[str, Any] = {} if body is None else {"json": body}
        if isinstance(body, bytes):
            options = {"content": body}
        response = self._house.ask(method, path + query, **options)
        assert response.status_code in (200, 201), f"{method} {path}{query}: {response.text}"
        self.seen.append(Visited(method, template, path + query, response))
        return response


def visit_all(house: House) -> list[Visited]:
    """Fill an empty site, and ask every route of it, some in several ways."""
    tour = Tour(house)
    for part in (
        _system,
        _pools,
        _people,
        _cohorts,
        _subpools,
        _workflows,
        _apps,
        _data,
        _nodes,
        _configs,
        _lost,
    ):
        part(tour, house)
    return tour.seen


def _system(tour: Tour, house: House) -> None:
    for path in (
        "/api/version",
        "/client/version",
        "/health",
        "/metrics",
        "/api/openapi.json",
        "/api/auth/login",
    ):
        tour.ask("GET", path)
    tour.ask("GET", "/api/server-key", f"?challenge={'ab' * 32}")
    tour.ask("POST", "/api/auth/jwt/access_token", body={"token": house.secrets["admin"]})


def _people(tour: Tour, _house: House) -> None:
    user, own = "/api/auth/user", "/api/auth/access_token"
    other = f"{user}/{{user}}/access_token"
    tour.ask("PUT", "/api/configs/role/{role}", body=ROLE, role="writer")
    tour.ask("GET", "/api/configs/role")
    tour.ask("GET", "/api/configs/role/{role}", role="writer")
    tour.ask("POST", user, body={"id": "ann", "roles": ["writer"]})
    tour.ask("GET", user)
    tour.ask("GET", f"{user}/{{user}}", user="ann")
    tour.ask("PATCH", f"{user}/{{user}}", body={"add": ["osmo-admin"]}, user="ann")
    tour.ask("POST", f"{user}/{{user}}/roles", body={"role_name": "osmo-team-user"}, user="ann")
    tour.ask("DELETE", f"{user}/{{user}}/roles/{{role}}", user="ann", role="osmo-team-user")
    tour.ask("GET", "/api/auth/roles/{role}/users", role="writer")
    many = "/api/auth/roles/{role}/users"
    tour.ask("POST", many, body={"user_ids": ["ann", "none"]}, role="osmo-team-user")
    tour.ask("GET", f"{user}/{{user}}/roles", user="ann")
    tour.ask("PUT", "/api/configs/role", body={"configs": [{"name": "writer", **ROLE}]})
    tour.ask("POST", f"{own}/{{token}}", "?description=d&roles=osmo-admin", token="mine")
    tour.ask("GET", own)
    tour.ask("GET", f"{own}/{{token}}/roles", token="mine")
    tour.ask("DELETE", f"{own}/{{token}}", token="mine")
    tour.ask("POST", f"{other}/{{token}}", user="ann", token="hers")
    tour.ask("GET", other, user="ann")
    tour.ask("GET", f"{other}/{{token}}/roles", user="ann", token="hers")
    tour.ask("DELETE", f"{other}/{{token}}", user="ann", token="hers")
    tour.ask("DELETE", f"{user}/{{user}}", user="ann")
    tour.ask("DELETE", "/api/configs/role/{role}", role="writer")
    secret = {"type": "REGISTRY", "payload": {"registry": "r.io", "username": "u", "auth": "s"}}
    one = "/api/credentials/{credential}"
    tour.ask("POST", one, body=secret, credential="c")
    tour.ask("GET", "/api/credentials")
    tour.ask("DELETE", one, credential="c")


def _apps(tour: Tour, _house: House) -> None:
    one = "/api/app/user/{app_name}"
    tour.ask("POST", one, "?description=d", body=spec(), app_name="train")
    tour.ask("PATCH", one, body=spec(2), app_name="train")
    tour.ask("GET", one, app_name="train")
    tour.ask("GET", f"{one}/spec", app_name="train")
    tour.ask("GET", "/api/app", "?all_users=True")
    tour.ask("POST", f"{one}/rename", body="fit", app_name="train")
    tour.ask("DELETE", one, "?all_versions=True", app_name="fit")


def _pools(tour: Tour, house: House) -> None:
    every, one = "/api/configs/pool", "/api/configs/pool/{pool}"
    tour.ask("POST", "/api/configs/cohort", body={"name": "org"})
    gpu = {"guarantee": 100, "maximum": -1, "weight": 1}
    tour.ask("PUT", every, body={"configs": {"team": {"resources": {"gpu": gpu}}}})
    tour.ask("POST", every, body={"name": "full", "configs": POOL})
    tour.ask("PUT", one, body={"configs": POOL, "description": "again"}, pool="second")
    tour.ask("PATCH", one, body={"configs_dict": {"description": "x"}}, pool="second")
    tour.ask("PUT", f"{one}/rename", body={"new_name": "third"}, pool="second")
    for query in ("", "?verbose=True"):
        tour.ask("GET", every, query)
        tour.ask("GET", one, query, pool="full")
    platform = f"{one}/platform/{{platform}}"
    tour.ask("PUT", platform, body={"configs": {"description": "y"}}, pool="full", platform="b")
    tour.ask("PUT", f"{platform}/rename", body={"new_name": "c"}, pool="full", platform="b")
    tour.ask("GET", f"{one}/platform", pool="full")
    tour.ask("GET", platform, pool="full", platform="c")
    tour.ask("DELETE", one, pool="third")
    house.settle()
    tour.ask("POST", "/api/profile/settings", body={"pool": "team"})
    tour.ask("GET", "/api/profile/settings")


def _cohorts(tour: Tour, _house: House) -> None:
    every, one = "/api/configs/cohort", "/api/configs/cohort/{cohort}"
    tour.ask("POST", every, "?plan=True", body={"name": "more", "parent": "org", "quota": 3})
    tour.ask("POST", every, body={"name": "more", "parent": "org", "quota": 3})
    tour.ask("PATCH", one, body={"parent": None, "lending_limit": 1}, cohort="more")
    # A cycle stops what hangs on it, until it is broken.
    tour.ask("PATCH", one, body={"parent": "more"}, cohort="more")
    tour.ask("PATCH", one, body={"parent": None}, cohort="more")
    tour.ask("GET", every)
    tour.ask("GET", one, cohort="more")
    tour.ask("DELETE", one, cohort="more")


def _subpools(tour: Tour, house: House) -> None:
    every, one = "/api/configs/pool/{pool}/subpool", "/api/configs/pool/{pool}/subpool/{subpool}"
    at = {"pool": "team"}
    tour.ask("POST", every, "?plan=True", body={"name": "a", "quota": 30}, **at)
    for name, quota in (("a", 30), ("b", 40), ("c", 20)):
        tour.ask("POST", every, body={"name": name, "quota": quota}, **at)
    waits = house.submit(30, "team--c", text=spec(20, name="held"))
    house.settle()
    house.submit(20, "team--c", text=spec(20, name="waits"))
    house.submit(15, "team--c", text=spec(15, name="waits"))
    house.settle()
    # Some of those that wait are stranded by it, and some delayed.
    tour.ask("PATCH", one, "?plan=True", body={"quota": 18}, subpool="c", **at)
    tour.ask("PATCH", one, body={"quota": 18}, subpool="c", **at)
    tour.ask("DELETE", one, "?plan=True", subpool="c", **at)
    tour.ask("DELETE", one, subpool="c", **at)
    tour.ask("GET", one, subpool="c", **at)
    tour.ask("GET", one, subpool="a", **at)
    tour.ask("GET", every, "?include_archived=True", **at)
    tour.ask("GET", f"{one}/history", subpool="c", **at)
    for query in ("?all_pools=True", "?pools=team--c"):
        tour.ask("GET", "/api/pool_quota", query)
    tour.ask("GET", "/api/pool")
    tour.ask("GET", "/api/configs/pool/{pool}", pool="team--c")
    tour.ask("GET", "/api/queues")
    tour.ask("GET", "/api/kube/export/{system}", "?namespace=ml", system="kueue")
    tour.ask("GET", "/api/kube/export/{system}", system="kai")
    assert waits


def _workflows(tour: Tour, house: House) -> None:
    submit, one = "/api/pool/{pool}/workflow", "/api/workflow/{workflow}"
    low = house.submit(1, "team", "LOW", text=spec(70, name="low"))
    house.settle()
    for query in ("", "?dry_run=True", "?validation_only=True", "?label=a=b&priority=LOW"):
        tour.ask("POST", submit, query, body={"file": spec(4)}, pool="team--a")
    elastic = house.submit(3, "team--a", text=ELASTIC)
    large = tour.ask("POST", submit, body={"file": spec(29, groups=2)}, pool="team--a").json()[
        "name"
    ]
    house.time.pass_minutes(1)
    house.run(40, "team--b")
    house.settle()
    for name in (low, elastic, large, "held-1", "waits-1"):
        for query in ("", "?remedies=True", "?queues=True&remedies=True"):
            tour.ask("GET", f"{one}/why", query, workflow=name)
        for query in ("", "?verbose=True", "?skip_groups=True"):
            tour.ask("GET", one, query, workflow=name)
    tour.ask("PATCH", one, body={"pool": "team--b", "priority": "LOW"}, workflow=large)
    tour.ask("POST", f"{one}/tag", "?add=x", workflow=low)
    tour.ask("GET", "/api/tag")
    tour.ask("GET", "/api/users")
    tour.ask("GET", f"{one}/task/{{task}}", workflow=low, task="task-0-0")
    tour.ask("POST", f"{one}/cancel", "?message=enough", workflow="held-1")
    house.settle()
    again = f"{submit}/{{workflow}}/restart"
    tour.ask("POST", again, pool="team", workflow="held-1")
    tour.ask("GET", one, "?verbose=True", workflow="held-1")
    tour.ask("GET", one, workflow="held-2")
    tour.ask("GET", "/api/workflow", "?all_pools=True&all_users=True")
    array = tour.ask("POST", submit, "?array=0-2%251", body={"file": spec(1)}, pool="team").json()
    house.settle()
    tour.ask("GET", "/api/array", "?all_pools=True")
    tour.ask("GET", "/api/array/{workflow}", workflow=array["name"])
    tour.ask("POST", f"{one}/cancel", workflow=array["name"])
    house.settle()
    for query in ("", "&summary=True", "&aggregate_by_workflow=True"):
        tour.ask("GET", "/api/task", f"?all_pools=True&all_users=True{query}")
    for what in ("logs", "error_logs", "events"):
        tour.ask("GET", f"{one}/{what}", "?follow=False", workflow=elastic)
    tour.ask("GET", f"{one}/spec", workflow=elastic)
    for what in ("exec/task/{task}", "exec/group/{group}"):
        about = {"workflow": elastic, "task": "lead", "group": "workers"}
        tour.ask("POST", f"{one}/{what}", "?entry_command=ls", **about)
    tour.ask("POST", f"{one}/portforward/{{task}}", "?task_ports=80", workflow=elastic, task="lead")
    tour.ask("POST", f"{one}/rsync/task/{{task}}", workflow=elastic, task="lead")
    tour.ask("GET", "/api/router/version")
    tour.ask("GET", "/api/plugins/configs")
    # The backend of this site runs nothing, so it keeps nothing.
    vars(house.backend)["results"] = OneResult()
    tour.ask("GET", f"{one}/results", "?task_name=lead", workflow=elastic)
    part = "?task_name=lead&path=folder/file"
    tour.ask("GET", f"{one}/results/part", part, workflow=elastic)
    house.time.pass_minutes(60)
    for query in ("", "?by=user&since=1h"):
        tour.ask("GET", "/api/usage", query)


def _data(tour: Tour, house: House) -> None:
    data, draft = "/api/pool/{pool}/data", "/api/pool/{pool}/data/draft/{draft}"
    names = {"pool": "team", "draft": "draft-one"}
    sha256 = hashlib.sha256(b"x").hexdigest()
    with TemporaryDirectory() as folder:
        # The backend of this site runs nothing, so it keeps nothing.
        vars(house.backend)["pool_data"] = LocalPoolData(LocalOptions(Path(folder)))
        files = {"files": [{"path": "a/b", "sha256": sha256, "size_bytes": 1}]}
        tour.ask("POST", draft, body=files, **names)
        part = write_part(SentPart(sha256, 1, 0, b"x"))
        tour.ask("POST", f"{data}/contents", body=part, pool="team")
        tour.ask("POST", f"{draft}/publish", body={"path": "c"}, **names)
        tour.ask("GET", data, "?path=c", pool="team--a")
        tour.ask("GET", f"{data}/part", "?path=c/a/b", pool="team")
        tour.ask("GET", f"{data}/usage", pool="team")
        tour.ask("DELETE", data, "?path=c", pool="team")


def _nodes(tour: Tour, house: House) -> None:
    node = "/api/node/{node}"
    tour.ask("GET", "/api/node")
    tour.ask("GET", "/api/resources", "?all_pools=True")
    tour.ask("GET", "/api/resources/{node}", node="node-0")
    tour.ask("PATCH", "/api/resources/{node}", body={"cordoned": True}, node="node-0")
    tour.ask("POST", f"{node}/cordon", node="node-0")
    tour.ask("POST", f"{node}/uncordon", node="node-0")
    tour.ask("POST", f"{node}/drain", node="node-0")
    house.settle()
    # There is no place for it, whatever its quota.
    tour.ask("GET", "/api/workflow/{workflow}/why", "?remedies=True", workflow="job-1")


def _lost(tour: Tour, house: House) -> None:
    """The last: nothing is where the site was."""
    node_sync.write_fault(house.site, house.backend.name, "It does not answer.")
    tour.ask("POST", "/api/node/{node}/declare_lost", node="node-0")
    node_sync.write_fault(house.site, "gone", "It does not answer.")
    tour.ask("DELETE", "/api/configs/backend/{backend}", backend="gone")


def _templates(tour: Tour) -> None:
    template = {"spec": {"tolerations": [{"key": "gpu"}]}}
    tour.ask("PUT", "/api/configs/pod_template", body={"configs": {"gpu": template}})
    one = "/api/configs/pod_template/{pod_template}"
    tour.ask("PUT", one, body={"configs": template}, pod_template="rack")
    tour.ask("GET", one, pod_template="rack")
    tour.ask("DELETE", one, pod_template="rack")
    pod = {"spec": {"containers": [{"name": "task", "image": "probe"}]}}
    tour.ask("PUT", "/api/configs/pod_template", body={"configs": {"probe": pod}})
    test = {
        "cron_schedule": "0 2 * * *",
        "node_conditions": ["gpu"],
        "common_pod_template": ["probe"],
    }
    tour.ask("PUT", "/api/configs/backend_test", body={"configs": {"nightly": test}})
    tour.ask("GET", "/api/configs/backend_test")
    one = "/api/configs/backend_test/{backend_test}"
    tour.ask("PUT", one, body={"configs": test}, backend_test="hourly")
    tour.ask("GET", one, backend_test="hourly")
    change = {"configs_dict": {"test_timeout": "10m"}}
    tour.ask("PATCH", one, body=change, backend_test="hourly")
    tour.ask("DELETE", one, backend_test="hourly")
    claim = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "shared-{{WF_GROUP_UUID}}"},
    }
    tour.ask("PUT", "/api/configs/group_template", body={"configs": {"shared": claim}})
    one = "/api/configs/group_template/{group_template}"
    tour.ask("PUT", one, body={"configs": claim}, group_template="more")
    tour.ask("GET", one, group_template="more")
    tour.ask("DELETE", one, group_template="more")


def _configs(tour: Tour, house: House) -> None:
    for kind in ("backend", "pod_template", "group_template", "resource_validation"):
        tour.ask("GET", f"/api/configs/{kind}")
    _templates(tour)
    rule = {"operator": "GE", "left_operand": "{{USER_CPU}}", "right_operand": "0"}
    every = "/api/configs/resource_validation"
    tour.ask("PUT", every, body={"configs_dict": {"least": [rule]}})
    tour.ask("GET", every)
    tour.ask("PUT", f"{every}/{{validation}}", body={"configs": [rule]}, validation="more")
    tour.ask("GET", f"{every}/{{validation}}", validation="more")
    tour.ask("DELETE", f"{every}/{{validation}}", validation="more")
    tags = "/api/configs/history/{config_type}/revision/{revision}/tags"
    tour.ask("POST", tags, body={"set_tags": ["good"]}, config_type="POOL", revision="1")
    tour.ask("GET", "/api/configs/backend/{backend}", backend="default")
    about = {"configs": {"description": "two racks"}}
    tour.ask("POST", "/api/configs/backend/{backend}", body=about, backend="default")
    tour.ask("GET", "/api/configs/service")
    versions = {"cli_config": {"latest_version": "6.4.0"}}
    tour.ask("PATCH", "/api/configs/service", body={"configs_dict": versions})
    tour.ask("PUT", "/api/configs/service", body={"configs": versions})
    for kind, field in (("workflow", "max_num_tasks"), ("policy", "priority_boost")):
        path = f"/api/configs/{kind}"
        value = 5 if kind == "workflow" else True
        tour.ask("GET", path)
        tour.ask("PATCH", path, body={"configs_dict": {field: value}})
        tour.ask("PUT", path, body={"configs": {field: value}, "tags": ["t"]})
    for query in ("", "?omit_data=True", "?config_types=POOL&order=ASC"):
        tour.ask("GET", "/api/configs/history", query)
    diff = "?config_type=POOL&first_revision=1&second_revision=2"
    tour.ask("GET", "/api/configs/diff", diff)
    tour.ask("POST", "/api/configs/history/rollback", body={"config_type": "POOL", "revision": 5})
    tour.ask("DELETE", tags.removesuffix("/tags"), config_type="POOL", revision="1")
    tour.ask("GET", "/api/audit")
    tour.ask("GET", "/api/kube/drift")
    tour.ask("GET", "/api/history", "?until=1d")
    tour.ask("POST", "/api/history/drop", body={"workflows": []})
    house.engine.stopping.set()
    tour.ask("GET", "/api/events", "?after=0")
    house.engine.stopping.clear()
