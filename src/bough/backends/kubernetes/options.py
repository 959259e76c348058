"""The settings of the backend `kubernetes`."""

from __future__ import annotations

from pathlib import Path

import msgspec

NAMESPACE = "bough"
#: How long a task may take to start before it is given up.
START_TIMEOUT_S = 1_800
#: The most that a Secret can hold.
MOST_FILE_BYTES = 1 << 20


VOLUME_IMAGE = "busybox:1.37"


class DataVolume(msgspec.Struct, frozen=True):
    """Where tasks leave data for each other."""

    #: The name of a claim that all nodes can mount.
    claim: str
    #: An image with a shell, which creates and deletes folders.
    image: str = VOLUME_IMAGE


class KubernetesOptions(msgspec.Struct, frozen=True):
    """The settings of one cluster."""

    #: The folder for logs.
    folder: Path
    #: The identity of the site; pods of another site are never touched.
    site: str
    #: Where pods, Secrets and Services are created.
    namespace: str = NAMESPACE
    #: `None`: wherever kubectl would find it.
    kubeconfig: Path | None = None
    context: str | None = None
    start_timeout_s: int = START_TIMEOUT_S
    #: `None`: no data is kept between tasks.
    volume: DataVolume | None = None
    #: How many requests are sent in parallel.
    workers: int = 16
    #: How much of each attempt's log is kept, and for how many days after its end.
    log_bytes: int = 64 << 20
    keep_days: int = 30
