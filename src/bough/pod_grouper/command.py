"""`bough kube group` as a process: makes PodGroups, and places no pods."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from types import FrameType
from typing import Any

import msgspec

from bough.kube.client import KubeClient
from bough.kube.kubeconfig import find_access
from bough.kube.objects import Kind
from bough.kube.watching import Follower
from bough.pod_grouper.grouper import Grouper, Heard
from bough.pod_grouper.kinds import HEARD

LOG = logging.getLogger(__name__)
PATIENCE_S = 8.0


class Options(msgspec.Struct, frozen=True):
    """The settings from the command line."""

    scheduler_name: str = "bough"
    kubeconfig: str | None = None
    context: str | None = None


def group(options: Options) -> None:
    """Make PodGroups until told to stop."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    stopping = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopping.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    run(options, stopping)


def run(options: Options, stopping: threading.Event) -> None:
    """Make PodGroups until `stopping` is set."""
    client = KubeClient(find_access(kubeconfig=options.kubeconfig, context=options.context))
    grouper = Grouper(client, options.scheduler_name, _log)

    def follower(kind: Kind[Any]) -> Follower[Any]:
        def hear(heard: Heard) -> None:
            grouper.hear(kind, heard)

        return Follower(client, kind, hear)

    followers = [follower(kind) for kind in HEARD]
    for each in followers:
        each.start()
    grouper.start()
    LOG.info("making PodGroups for pods of scheduler %s", options.scheduler_name)
    try:
        stopping.wait()
    finally:
        for each in followers:
            each.stop(PATIENCE_S)
        grouper.stop(PATIENCE_S)
        client.close()


def _log(pod: str, _uid: str, waits: str) -> None:
    if waits:
        LOG.warning("pod %s waits for %s", pod, waits)
