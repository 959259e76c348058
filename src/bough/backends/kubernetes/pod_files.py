"""What pods wrote, as far as it was read into files; every process of the machine can read them."""

from __future__ import annotations

from bough.backends.kubernetes.log_folders import LogFolders
from bough.errors import Conflict
from bough.model.backend import LogPart, Machine
from bough.model.session import SessionRequest


class PodFiles:
    """The logs of the pods of one backend."""

    def __init__(self, folders: LogFolders, name: str) -> None:
        self._folders = folders
        self._name = name

    @property
    def name(self) -> str:
        """The name that pools refer to."""
        return self._name

    @property
    def machine(self) -> Machine | None:
        """It belongs to none: every server can reach the apiserver."""
        return None

    def read_log(
        self,
        attempt: str,
        position: int = 0,
        *,
        last_lines: int | None = None,
        limit_bytes: int | None = None,
    ) -> LogPart | None:
        """The log of an attempt from a position on, or its last lines; `None`: there is none."""
        return self._folders.read(attempt, position, last_lines, limit_bytes)

    def open_session(self, attempt: str, wanted: SessionRequest) -> int:
        """Not yet: a line's other end would pass connections on to the API of the cluster."""
        del attempt, wanted
        raise Conflict(
            f"Tasks of backend {self.name} run in a cluster; Bough cannot look into them yet.",
            hint="`kubectl exec` and `kubectl port-forward` reach their pods",
        )
