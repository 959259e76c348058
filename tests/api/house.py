"""A server without a socket: an application, its scheduler by hand, and short verbs."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from litestar import Litestar
from litestar.testing import TestClient

from bough.backends.virtual import VirtualBackend
from bough.control.people.administrators import ensure_admin
from bough.control.scheduling.loop import Bell
from bough.control.site import Site
from bough.server.application import keep, make_application
from bough.server.authenticator import Authenticator
from bough.server.middleware import Middleware
from bough.server.scheduler_thread import Engine
from bough.store import Store
from tests.store.world import Time, big_node

SUBPOOLS = "/api/configs/pool/team/subpool"
SUBMIT = "/api/pool/{}/workflow?priority={}"
#: What programs that were written for undivided pools read of each.
OLD_KEYS = {
    "name",
    "description",
    "status",
    "download_type",
    "enable_maintenance",
    "backend",
    "default_platform",
    "default_exec_timeout",
    "default_queue_timeout",
    "max_exec_timeout",
    "max_queue_timeout",
    "default_exit_actions",
    "resources",
    "topology_keys",
    "platforms",
    "resource_usage",
}


class StillEngine(Engine):
    """An engine whose cycles are made by the test."""

    @property
    def alive(self) -> bool:
        return True

    def settle(self) -> None:
        for _ in range(50):
            cycle = self._scheduler.cycle()
            if not cycle.applied.changed and not cycle.told:
                return
        raise AssertionError("the scheduler does not come to rest")


def spec(gpus: int = 1, name: str = "job", tasks: int = 1, groups: int = 1) -> str:
    """A workflow of equal groups, each of so many GPUs."""
    lines = ["workflow:", f"  name: {name}", "  resources:"]
    lines += [f"    default: {{gpu: {gpus // tasks}, cpu: 1, memory: 1Gi, storage: 1Gi}}"]
    lines += ["  groups:"]
    for group in range(groups):
        lines += [f"  - name: group-{group}", "    tasks:"]
        for task in range(tasks):
            lead = "true" if task == 0 else "false"
            lines += [f"    - {{name: task-{group}-{task}, image: i, lead: {lead}}}"]
    return "\n".join(lines) + "\n"


_MADE: dict[str, Litestar] = {}


def _application(authenticator: Authenticator, engine: Engine, **options: Any) -> Litestar:
    """Put together once for each kind, since that is slow; only what it works with is new."""
    key = repr(options)
    if key not in _MADE:
        _MADE[key] = make_application(authenticator, engine, **options)
    made = _MADE[key]
    made.state.update(keep(authenticator, engine))
    return made


class House:
    """A site with an administrator, and a client for every user."""

    def __init__(self, store: Store, gpus: int = 100, **options: Any) -> None:
        """secret:  of the administrator, where the store has a site that has come to rest."""
        self.time = Time()
        self.site = Site(store, self.time, namespace="ns")
        self._is_settled = "secret" in options
        secret = options.pop("secret", None) or ensure_admin(self.site)
        assert secret is not None
        self.secrets = {"admin": secret}
        kind = options.pop("backend", VirtualBackend)
        self.backend = kind((big_node(gpus),), self.time.now_ms)
        others = options.pop("others", lambda _: ())(self.time.now_ms)
        self.engine = StillEngine(self.site, (self.backend, *others), Bell())
        self.authenticator = Authenticator(self.site, options.pop("trusted_proxies", ()))
        self.application = _application(self.authenticator, self.engine, **options)
        self.application.state.gauges.begin()
        self._client = TestClient(Middleware(self.application))

    def __enter__(self) -> House:
        self._client.__enter__()
        if not self._is_settled:
            self.settle()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.__exit__(kind, error, trace)
        self.engine._scheduler.release()

    # Asking

    def ask(self, method: str, path: str, *, user: str | None = "admin", **options: Any) -> Any:
        """The response to a request of a user; `None`: without a token."""
        headers = dict(options.pop("headers", {}))
        if user is not None:
            headers["authorization"] = f"Bearer {self.secrets[user]}"
        return self._client.request(method, path, headers=headers, **options)

    def get(self, path: str, user: str | None = "admin", **options: Any) -> Any:
        """The body of an answer, which must be a success."""
        return self._body(self.ask("GET", path, user=user, **options))

    def send(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """The body of the answer to a change that must succeed."""
        return self._body(self.ask(method, path, json=body, **options))

    def refused(self, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, str]:
        """The status and the message of a refusal."""
        if body is not None:
            options["json"] = body
        response = self.ask(method, path, **options)
        assert response.status_code >= 400, response.text
        answer = response.json()
        assert {"message", "error_code", "workflow_id"} <= set(answer)
        return response.status_code, answer["message"]

    def _body(self, response: Any) -> Any:
        assert response.status_code in (200, 201), response.text
        return response.json()

    # Doing

    def user(self, name: str, *roles: str) -> str:
        """A new user with a token."""
        self.send("POST", "/api/auth/user", {"id": name, "roles": list(roles)})
        path = f"/api/auth/user/{name}/access_token/test"
        self.secrets[name] = self._body(self.ask("POST", path))
        return name

    def pool(self, name: str, quota: int, **fields: Any) -> None:
        gpu = {"guarantee": quota, "maximum": -1, "weight": 1}
        configs = {name: {"resources": {"gpu": gpu}, **fields}}
        self.send("PUT", "/api/configs/pool", {"configs": configs})

    def create(self, pool: str, name: str, quota: Any, **options: Any) -> Any:
        body = {"name": name, "quota": quota}
        return self.send("POST", f"/api/configs/pool/{pool}/subpool", body, **options)

    def submit(self, gpus: int, pool: str = "team", priority: str = "HIGH", **options: Any) -> str:
        text = options.pop("text", None) or spec(gpus)
        path = f"/api/pool/{pool}/workflow?priority={priority}"
        return self.send("POST", path, {"file": text}, **options)["name"]

    def settle(self) -> None:
        self.engine.settle()

    def run(self, gpus: int, pool: str = "team", priority: str = "HIGH") -> str:
        name = self.submit(gpus, pool, priority)
        self.settle()
        assert self.status(name) == "RUNNING"
        return name

    def finish(self, name: str) -> None:
        """Let all that runs of a workflow end by itself."""
        document = self.get(f"/api/workflow/{name}")
        for group in document["groups"]:
            for task in group["tasks"]:
                attempt = f"{task['task_uuid']}/{task['retry_id']}"
                running = self.backend._attempts[attempt]
                running.ended_ms, running.exit_code = self.time.ms, 0
        self.settle()

    # Looking

    def status(self, name: str) -> str:
        return self.get(f"/api/workflow/{name}")["status"]

    def queues(self) -> dict[str, Any]:
        return {each["name"]: each for each in self.get("/api/queues")}

    def leaves(self, pool: str = "team") -> dict[str, int | None]:
        start = f"osmo-pool-ns-{pool}--"
        return {
            name.removeprefix(start): queue["quota"]
            for name, queue in self.queues().items()
            if queue["leaf"] and name.startswith(start)
        }

    def row(self, pool: str = "team") -> tuple[str, str, str]:
        """Quota, used, available, as clients get them."""
        answer = self.get("/api/pool_quota?all_pools=True")
        for each in answer["node_sets"]:
            for row in each["pools"]:
                if row["name"] == pool:
                    usage = row["resource_usage"]
                    return usage["quota_limit"], usage["quota_used"], usage["quota_free"]
        raise AssertionError(f"no row for {pool}")

    def queue_of(self, name: str) -> str:
        """The leaf that a workflow counts against, by what is used in it."""
        from bough.control.workflows import query
        from bough.model.access import Actor

        admin = Actor("root", ("osmo-admin", "osmo-default"))
        return query.get_workflow(self.site, admin, name).groups[0].queue


def prepare_empty(store: Store) -> str:
    """An empty site; the secret of its administrator."""
    with House(store) as house:
        return house.secrets["admin"]


def prepare_team(store: Store) -> str:
    """`T0`: pool `team` with all 100 GPUs."""
    with House(store) as house:
        house.pool("team", 100)
        return house.secrets["admin"]


def prepare_divided(store: Store) -> str:
    """`T3`: `a` has 30, `b` 40, `c` 20, and 10 are left."""
    with House(store) as house:
        house.pool("team", 100)
        for name, quota in (("a", 30), ("b", 40), ("c", 20)):
            house.create("team", name, quota)
        return house.secrets["admin"]


def statuses(house: House, *names: str) -> list[str]:
    return [house.status(name) for name in names]


def delete(house: House, name: str, pool: str = "team", **options: object) -> dict[str, object]:
    return house.send("DELETE", f"/api/configs/pool/{pool}/subpool/{name}", **options)


def resize(house: House, name: str, quota: int, **options: object) -> dict[str, object]:
    return house.send(
        "PATCH", f"/api/configs/pool/team/subpool/{name}", {"quota": quota}, **options
    )


def full(divided: House) -> tuple[str, str]:
    """Everything in use, 30 waiting in a, and a deleted: what runs in a, and what waits."""
    for pool, gpus in (("team--b", 40), ("team--c", 20), ("team", 10)):
        divided.run(gpus, pool)
    running = divided.run(30, "team--a")
    waiting = divided.submit(30, "team--a")
    divided.settle()
    delete(divided, "a")
    divided.settle()
    return running, waiting
