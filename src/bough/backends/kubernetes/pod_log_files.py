"""Logs of pods that were read into files, which any process on this machine can read."""

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
        """`None`: the backend is tied to no machine, as every server can reach the apiserver."""
        return None

    def read_log(
        self,
        attempt: str,
        position: int = 0,
        *,
        last_lines: int | None = None,
        limit_bytes: int | None = None,
    ) -> LogPart | None:
        """An attempt's log from a position on, or its last lines; `None` if there is none."""
        return self._folders.read(attempt, position, last_lines, limit_bytes)

    def open_session(self, attempt: str, wanted: SessionRequest) -> int:
        """Not supported yet: a session would have to be forwarded to the API of the cluster."""
        del attempt, wanted
        raise Conflict(
            f"Tasks of backend {self.name} run in a cluster; Bough cannot look into them yet.",
            hint="`kubectl exec` and `kubectl port-forward` reach their pods",
        )
