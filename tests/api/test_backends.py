"""Several backends side by side: a pool says which one runs its workflows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bough.control.clock import SteadyClock
from bough.control.pools import pools
from bough.control.scheduling.loop_bell import Bell
from bough.control.workflows.query import get_workflow
from bough.control.workflows.specs import read_spec
from bough.control.workflows.submission import submit
from bough.errors import Invalid
from bough.model.access import Actor
from bough.server.backend_file import chosen_backends
from bough.server.loop_process import RunningLoop, running_loop
from bough.server.process import upgrade_database
from bough.server.settings import Settings
from bough.store import nodes as node_store
from bough.store import tasks as task_store

ADMIN = Actor("admin", frozenset({"osmo-admin"}))
TWO = """\
backends:
- {name: east, kind: virtual, options: {gpus: 8}}
- {name: west, kind: virtual, options: {gpus: 16}}
"""


def write(folder: Path, text: str) -> Settings:
    path = folder / "backends.yaml"
    path.write_text(text)
    return Settings(folder / "data", backends=path)


@contextmanager
def looping(settings: Settings) -> Iterator[RunningLoop]:
    """The loop of a server, in this process."""
    upgrade_database(settings)
    with running_loop(settings, SteadyClock(), Bell()) as running:
        yield running


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


def run(running: RunningLoop, pool: str) -> set[str | None]:
    """Submit to a pool; the backends whose nodes its task got."""
    text = "workflow: {name: x, resources: {default: {gpu: 1}}, tasks: [{name: a, image: i}]}"
    accepted = submit(running.site, ADMIN, pool, read_spec(text)).workflow
    assert accepted is not None
    name = accepted.workflow_id
    until(lambda: "RUNNING" == get_workflow(running.site, ADMIN, name).workflow.status)
    with running.site.store.read() as connection:
        tasks = task_store.tasks_of(connection, [accepted.uuid])
    return {each.backend for each in tasks}


def test_each_pool_runs_on_the_backend_that_it_names(tmp_path: Path) -> None:
    with looping(write(tmp_path, TWO)) as running:
        for name in ("east", "west"):
            pools.create_pool(running.site, ADMIN, f"pool-{name}", {"backend": name})
        found = {name: run(running, f"pool-{name}") for name in ("east", "west")}
        with running.site.store.read() as connection:
            sizes = {
                name: sum(each.gpus for each in node_store.list_all(connection, name))
                for name in ("east", "west")
            }
    assert {"east": {"east"}, "west": {"west"}} == found
    assert {"east": 8, "west": 16} == sizes


def test_a_backend_that_fails_fails_alone(tmp_path: Path) -> None:
    with looping(write(tmp_path, TWO)) as running:
        for name in ("east", "west"):
            pools.create_pool(running.site, ADMIN, f"pool-{name}", {"backend": name})
        run(running, "pool-west")

        def fail() -> None:
            raise OSError("the cable is cut")

        running.engine.backends["west"].nodes = fail  # type: ignore[method-assign]
        until(lambda: "the cable is cut" in (_fault(running, "west") or ""))
        assert {"east"} == run(running, "pool-east")
        assert _fault(running, "east") is None


def test_each_backend_of_a_file_says_who_decides_places(tmp_path: Path) -> None:
    text = """
    backends:
      - {name: east, kind: kubernetes}
      - {name: west, kind: kubernetes, options: {decider: kai, namespace: other}}
      - {name: south, kind: kubernetes, options: {decider: bough, namespace: third}}
    """
    settings = write(tmp_path, text)
    places = {
        each.name: each.abilities(settings).places_tasks for each in chosen_backends(settings)
    }
    assert {"east": True, "west": False, "south": True} == places


def _fault(running: RunningLoop, name: str) -> str | None:
    with running.site.store.read() as connection:
        return node_store.backends(connection)[name].fault


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("backends: []", "backends: at least one is needed"),
        ("backends: [{name: a, kind: virtul}]", "backends[0].kind: there is no backend 'virtul'"),
        ("backends: [{name: a, kind: virtual, option: {}}]", "unknown field `option`"),
        ("backends: [{name: a, kind: virtual, options: {gpu: 1}}]", "unknown field `gpu`"),
        ("backends: [{name: a, kind: virtual, options: {gpus: -1}}]", "gpus: -1"),
        ("backends: [{name: a, kind: virtual, options: {gpus: x}}]", "Expected `int | null`"),
        ("backends: [{name: a, kind: local, options: {gpus: 1}}]", "unknown field `gpus`"),
        ("backends: [{name: '-a', kind: virtual}]", "backends[0].name"),
        (
            "backends: [{name: a, kind: kubernetes, options: {decider: kay}}]",
            "backends[0].options.decider: 'kay' decides nothing; there are: bough, kai",
        ),
        ("backends: [{kind: virtual}]", "required field `name`"),
        ("backends: [{name: a, kind: virtual}, {name: a, kind: local}]", "of the name a"),
        ("backends: [{name: a, kind: local}, {name: b, kind: local}]", "only one can be local"),
        ("[1, 2]", "Expected `object`"),
        ("backends: []\n---\nbackends: []", "one document with backends is expected, not 2"),
        ("backends: {", "backends.yaml"),
    ],
)
def test_what_is_wrong_with_the_file_is_said(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(Invalid) as error:
        chosen_backends(write(tmp_path, text))
    assert said in str(error.value)


def test_nodes_of_a_virtual_backend_are_read_from_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "nodes.yaml").write_text(
        "{apiVersion: v1, kind: Node, metadata: {name: big}, status: {allocatable: "
        '{nvidia.com/gpu: "3", cpu: "8", memory: 1Gi, pods: "9"}}}'
    )
    text = "backends: [{name: a, kind: virtual, options: {nodes: nodes.yaml}}]"
    with looping(write(tmp_path, text)) as running:
        (node,) = running.engine.backends["a"].nodes() or ()
    assert ("big", 3) == (node.name, node.gpus)
