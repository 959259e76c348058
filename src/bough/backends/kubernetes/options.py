"""The settings of the backend `kubernetes`."""

from __future__ import annotations

from pathlib import Path

import msgspec

NAMESPACE = "bough"
#: How long a task may take to start before it is given up.
START_TIMEOUT_S = 1_800
#: What a Secret can hold.
MOST_FILE_BYTES = 1 << 20


VOLUME_IMAGE = "busybox:1.37"


class DataVolume(msgspec.Struct, frozen=True):
    """Where tasks leave data for each other."""

    #: The name of a claim that all nodes can mount.
    claim: str
    #: An image with a shell, which makes folders and drops them.
    image: str = VOLUME_IMAGE


class KubernetesOptions(msgspec.Struct, frozen=True):
    """The settings of one cluster."""

    #: Holds the logs.
    folder: Path
    #: The identity of the site; pods of another one are never touched.
    site: str
    #: Where pods, Secrets and Services are made.
    namespace: str = NAMESPACE
    #: `None`: as kubectl finds it.
    kubeconfig: Path | None = None
    context: str | None = None
    start_timeout_s: int = START_TIMEOUT_S
    #: `None`: no data is kept between tasks.
    volume: DataVolume | None = None
    #: Requests in flight.
    workers: int = 16
    #: How much of each attempt's log is kept, and for how long after its end.
    log_bytes: int = 64 << 20
    keep_days: int = 30
