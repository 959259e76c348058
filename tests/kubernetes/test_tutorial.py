"""The tutorial, followed with pods: what the commands print is what the page shows of processes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bough.kube.client import KubeClient
from bough.kube.kubeconfig import find_access
from tests.e2e.tutorial import NODE, PAGE, Reader, read_steps, settled
from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.bed.objects import namespace, node
from tests.kubernetes.conftest import make_bed
from tests.kubernetes.rights import kubeconfig_of_bough

SPACE = "tutorial"
#: What a task of the page runs on its machine, and with which data: a pod of the bed has an image.
_RUNS = re.compile(r"^    command: .*?(?=^default-values)", re.DOTALL | re.MULTILINE)
#: What is said of the machine of a server that runs processes.
_OF_PROCESSES = re.compile(r"^(Default Limits .*|WARNING: The data of .*)\n+", re.MULTILINE)


@pytest.fixture
def one_node() -> Iterator[Bed]:
    """The machine of the page, as a node."""
    for bed in make_bed():
        bed.ask("POST", "/api/v1/nodes", node(NODE, 8))
        yield bed


class PodReader(Reader):
    """A reader of the page whose server has a cluster instead of a machine."""

    def __init__(self, folder: Path, bed: Bed) -> None:
        super().__init__(folder)
        bed.ask("POST", "/api/v1/namespaces", namespace(SPACE))
        with closing(KubeClient(find_access(str(bed.kubeconfig)))) as admin:
            kubeconfig = kubeconfig_of_bough(bed, admin, SPACE)
        self._options = f"--kubeconfig {kubeconfig} --kube-namespace {SPACE}"

    def _serve(self, text: str) -> None:
        super()._serve(text.replace("--gpus 8", f"--backend kubernetes {self._options}"))


def with_pods(text: str) -> str:
    """A step of the page, told of pods."""
    said = _OF_PROCESSES.sub("", f"{text}\n").rstrip("\n")
    return _RUNS.sub("    image: bed\n", said)


def lines(text: str) -> list[str]:
    """What is printed, without what differs each time, and without empty lines."""
    return [each for each in settled(text).splitlines() if each]


def test_the_tutorial_prints_the_same_where_tasks_are_pods(one_node: Bed, tmp_path: Path):
    reader = PodReader(tmp_path, one_node)
    followed = 0
    try:
        for step in read_steps(PAGE.read_text(encoding="utf-8").split("\n")):
            if "workflow logs" in step.text:
                # The kubelets of the bed run nothing, so tasks print nothing of their own.
                continue
            printed = None if step.printed is None else with_pods(step.printed)
            told = step._replace(text=with_pods(step.text), printed=printed)
            shown = reader.follow(told)
            if printed is not None:
                assert lines(printed) == lines(with_pods(shown)), step.text
                followed += 1
    finally:
        reader.close()
    assert followed > 20
