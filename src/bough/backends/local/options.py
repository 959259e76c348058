"""How the local backend is set up. Must not know what runs."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bough.backends.local.command import Bounds
from bough.model.pool import OfferedNode

MEBIBYTE = 2**20
#: Where tasks find programs, unless they say otherwise.
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: What container runners need of the server's environment.
RUNNER_VARIABLES = ("HOME", "XDG_RUNTIME_DIR", "DOCKER_HOST", "CONTAINER_HOST")

#: More than any useful task has, and few enough that the machine goes on.
PROCESSES = 32_768


class LocalOptions(msgspec.Struct, frozen=True):
    """The settings of the local backend."""

    #: Everything that it keeps: attempts, logs, results, data of URLs.
    folder: Path
    #: The GPUs to offer, whatever the machine has; `None`: those that are found.
    gpus: int | None = None
    #: The GPUs to offer where there are none, and nothing went wrong while looking for them.
    gpus_if_none: int = 0
    #: Nodes to offer instead, all of them on this machine.
    nodes: tuple[OfferedNode, ...] = ()
    #: Folders and files that no task may see, such as the server's data.
    hidden: tuple[Path, ...] = ()
    #: Give each task a private view where the machine allows it.
    private: bool = True
    #: Enforce CPU, memory and the number of processes where the machine allows it.
    limits: bool = True
    #: How many processes and threads a task may have, and a quarter of what the machine can have
    #: at most; `None`: as many as there can be.
    processes: int | None = PROCESSES
    #: Run tasks as the user who submitted them; only for a server that runs as root.
    as_user: bool = False
    #: The program that runs images, as `docker` or `podman`; `None`: images are not used.
    container_runner: str | None = None
    #: What is kept of one attempt's log at most; the oldest goes first.
    log_bytes: int = 64 * MEBIBYTE
    #: How long attempts that are over are kept, with their logs and results.
    keep_days: int = 30
    #: Folders of this machine that `file://` URLs may name; none: such URLs are refused.
    data_folders: tuple[Path, ...] = ()
    #: How much of a task's data is copied at once at most.
    bounds: Bounds = Bounds()
    #: Where tasks find programs (`PATH`), unless they say otherwise.
    search_path: str = SEARCH_PATH

    def resolved(self) -> LocalOptions:
        """The same with paths that mean the same everywhere: supervisors have another folder."""
        runner = self.container_runner
        return msgspec.structs.replace(
            self,
            folder=self.folder.resolve(),
            hidden=tuple(each.resolve() for each in self.hidden),
            data_folders=tuple(each.resolve() for each in self.data_folders),
            container_runner=str(Path(runner).resolve()) if runner and "/" in runner else runner,
        )
