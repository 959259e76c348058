"""Tests of nodes by schedule, as configuration."""

from __future__ import annotations

from collections.abc import Mapping

from litestar.params import FromPath, JSONBody

from bough.api.configs import BackendTestAnswer, ConfigNote, PatchConfigs, PutConfigs
from bough.control.config import backend_tests
from bough.model.access import Action
from bough.model.node_test import BackendTest
from bough.server.route_declaration import Visit, caller, route
from bough.server.values import read_note

_TESTS = "/api/configs/backend_test"


@route("GET", _TESTS, Action.CONFIG_READ)
def list_backend_tests(request: Visit) -> dict[str, BackendTestAnswer]:
    """Scheduled node tests by name; backends refer to them."""
    site, actor = caller(request)
    return _answers(backend_tests.get_tests(site, actor))


@route("PUT", _TESTS, Action.CONFIG_UPDATE)
def put_backend_tests(request: Visit, data: JSONBody[PutConfigs]) -> dict[str, BackendTestAnswer]:
    """Add or replace node tests by name; `null` deletes one that no backend uses."""
    site, actor = caller(request)
    return _answers(backend_tests.put_tests(site, actor, data.configs, read_note(data)))


@route("GET", f"{_TESTS}/{{backend_test:str}}", Action.CONFIG_READ)
def get_backend_test(request: Visit, backend_test: FromPath[str]) -> BackendTestAnswer:
    """One node test."""
    site, actor = caller(request)
    return _answer(backend_test, backend_tests.get_test(site, actor, backend_test))


@route("PUT", f"{_TESTS}/{{backend_test:str}}", Action.CONFIG_UPDATE)
def put_backend_test(
    request: Visit, backend_test: FromPath[str], data: JSONBody[PutConfigs]
) -> BackendTestAnswer:
    """Create or replace one node test."""
    site, actor = caller(request)
    written = backend_tests.put_tests(site, actor, {backend_test: data.configs}, read_note(data))
    return _answer(backend_test, written[backend_test])


@route("PATCH", f"{_TESTS}/{{backend_test:str}}", Action.CONFIG_UPDATE)
def patch_backend_test(
    request: Visit, backend_test: FromPath[str], data: JSONBody[PatchConfigs]
) -> BackendTestAnswer:
    """Change some fields of a node test."""
    site, actor = caller(request)
    changed = backend_tests.patch_test(
        site, actor, backend_test, data.configs_dict, read_note(data)
    )
    return _answer(backend_test, changed)


@route("DELETE", f"{_TESTS}/{{backend_test:str}}", Action.CONFIG_UPDATE)
def delete_backend_test(
    request: Visit, backend_test: FromPath[str], data: JSONBody[ConfigNote | None] = None
) -> None:
    """Delete a node test that no backend uses."""
    site, actor = caller(request)
    backend_tests.delete_test(site, actor, backend_test, read_note(data))


def _answers(found: Mapping[str, BackendTest]) -> dict[str, BackendTestAnswer]:
    return {name: _answer(name, test) for name, test in found.items()}


def _answer(name: str, test: BackendTest) -> BackendTestAnswer:
    return BackendTestAnswer(
        name=name,
        description=test.description,
        cron_schedule=test.cron_schedule,
        test_timeout=test.test_timeout,
        node_conditions=list(test.node_conditions),
        common_pod_template=list(test.common_pod_template),
    )


HANDLERS = (
    list_backend_tests,
    put_backend_tests,
    get_backend_test,
    put_backend_test,
    patch_backend_test,
    delete_backend_test,
)
