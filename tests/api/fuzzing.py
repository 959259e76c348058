"""Requests made up from the description of the interface, sent to a real server as one user."""

from __future__ import annotations

from collections import Counter
from typing import Any

import httpx
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.house import spec
from tests.api.served import Served
from tests.api.test_matrix import TABLE

#: The stream ends only with the server, and the description does not describe itself.
APART = {
    ("GET", "/api/events"),
    ("GET", "/api/openapi.json"),
    # Websockets.
    ("GET", "/api/logger/workflow/{workflow}/osmo_ctrl/{task}/retry_id/{retry_id}"),
    ("GET", "/api/router/exec/{workflow}/client/{key}"),
    ("GET", "/api/router/portforward/{workflow}/client/{key}"),
    ("GET", "/api/router/rsync/{workflow}/client/{key}"),
}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
#: Of Hypothesis: how long something takes says nothing here.
EVERY_CHECK: Any = list(HealthCheck)
#: The roles of each kind of user; `None` shows no token.
PEOPLE: dict[str | None, tuple[str, ...]] = {
    None: (),
    "stranger": (),
    "member": ("osmo-team-user",),
    "manager": ("osmo-team-admin",),
    "writer": ("everything",),
    "chief": ("osmo-admin",),
}
#: What there is on the server, by the parameters of paths.
NAMES = {
    "pool": "team",
    "subpool": "a",
    "workflow": "job-1",
    "cohort": "org",
    "platform": "none",
    "backend": "default",
    "backend_test": "none",
    "user": "victim",
    "token": "spare",
    "role": "everything",
    "credential": "key",
    "app_name": "none",
    "config_type": "pool",
    "draft": "some-draft",
    "group": "group-0",
    "group_template": "none",
    "pod_template": "none",
    "revision": "1",
    "system": "kueue",
    "task": "task-0-0",
    "validation": "none",
}


class Fuzzed:
    """A server with something of everything, and the answers that one user got from it."""

    def __init__(self, server: Served, user: str | None) -> None:
        self.statuses: Counter[int] = Counter()
        self._headers = {} if user is None else {"authorization": f"Bearer {_fill(server, user)}"}
        if user is None:
            _fill(server, "stranger")
        self._names = _names(server)
        self._client = httpx.Client(timeout=60)
        self._address = server.address
        self._description = schemathesis.openapi.from_dict(server.get("/api/openapi.json"))

    def send_all(self, examples: int, *, derandomize: bool = True) -> None:
        """Send so many requests to every route; raises at an answer that is not described."""
        with self._client:
            for method, path in sorted(set(TABLE) - APART):
                operation = self._description[path][method]
                self._send(operation, examples, derandomize=derandomize)

    def _send(self, operation: Any, examples: int, *, derandomize: bool) -> None:
        @given(case=operation.as_strategy(), known=st.booleans())
        @settings(
            max_examples=examples,
            deadline=None,
            derandomize=derandomize,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=EVERY_CHECK,
        )
        def check(case: Any, known: bool) -> None:
            if known and case.path_parameters:
                case.path_parameters = {name: self._names[name] for name in case.path_parameters}
            response = self._ask(case)
            self.statuses[response.status_code] += 1
            case.validate_response(response, checks=CHECKS)

        check()

    def _ask(self, case: Any) -> httpx.Response:
        request = case.as_transport_kwargs(base_url=self._address)
        params = dict(request.get("params") or {})
        if "follow" in {each.name for each in case.operation.query}:
            # What is followed ends with its workflow, which does not end here.
            params["follow"] = "false"
        headers = httpx.Headers(request.get("headers") or {})
        headers.pop("authorization", None)
        headers.update(self._headers)
        body = {"json": request["json"]} if "json" in request else {"content": request.get("data")}
        return self._client.request(
            request["method"], request["url"], params=params, headers=headers, **body
        )


def _fill(server: Served, user: str) -> str:
    """Make something of everything; the token of the user."""
    _done(server, "POST", "/api/configs/cohort", {"name": "org", "quota": 2})
    gpu = {"guarantee": 6, "maximum": -1, "weight": 1}
    _done(server, "PUT", "/api/configs/pool", {"configs": {"team": {"resources": {"gpu": gpu}}}})
    _done(server, "POST", "/api/configs/pool/team/subpool", {"name": "a", "quota": 2})
    policy = {"effect": "Allow", "actions": ["*:*"], "resources": ["*"]}
    _done(server, "PUT", "/api/configs/role/everything", {"policies": [policy]})
    for name, roles in (("victim", ()), (user, PEOPLE[user])):
        _done(server, "POST", "/api/auth/user", {"id": name, "roles": list(roles)})
    _done(server, "POST", "/api/pool/team--a/workflow", {"file": spec(1)})
    secret: str = _done(server, "POST", f"/api/auth/user/{user}/access_token/test")
    return secret


def _names(server: Served) -> dict[str, str]:
    node = server.until(lambda: server.get("/api/node")["nodes"])[0]["name"]
    return {**NAMES, "node": node}


def _done(server: Served, method: str, path: str, body: Any = None) -> Any:
    response = server.ask(method, path, json=body)
    assert response.status_code in (200, 201), response.text
    return response.json()
