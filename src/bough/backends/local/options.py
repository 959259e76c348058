"""The settings of the local backend."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import msgspec

from bough.model.pool import OfferedNode

MEBIBYTE = 2**20
#: The default `PATH` of tasks.
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: Variables of the server's environment that container runners need.
RUNNER_VARIABLES = ("HOME", "XDG_RUNTIME_DIR", "DOCKER_HOST", "CONTAINER_HOST")

#: More than any useful task has, and few enough that the machine stays usable.
PROCESSES = 32_768


class TaskNetwork(StrEnum):
    """Which network tasks have."""

    #: Each group has one of its own, with a way out where that is possible.
    OWN = "own"
    #: The same without a way out.
    NONE = "none"
    #: That of this machine.
    HOST = "host"


class LocalOptions(msgspec.Struct, frozen=True):
    """The settings of the local backend."""

    #: Holds everything: attempts, logs, results, data of URLs.
    folder: Path
    #: The GPUs to offer, whatever the machine has; `None`: those that are found.
    gpus: int | None = None
    #: The CPUs, memory and disk to offer; `None`: what the machine has.
    cpu_milli: int | None = None
    memory_bytes: int | None = None
    storage_bytes: int | None = None
    #: Nodes to offer instead, whatever the machine has.
    nodes: tuple[OfferedNode, ...] = ()
    #: Folders and files to hide from tasks, such as the server's data.
    hidden: tuple[Path, ...] = ()
    #: Run each task in a sandbox, where the machine allows it.
    private: bool = True
    #: A network of its own needs a sandbox.
    network: TaskNetwork = TaskNetwork.OWN
    #: Enforce CPU, memory and the number of processes where the machine allows it.
    limits: bool = True
    #: How many processes and threads a task can have, up to a quarter of what the kernel allows;
    #: `None`: no limit.
    processes: int | None = PROCESSES
    #: Run tasks as the user who submitted them; the server must run as root.
    as_user: bool = False
    #: The account that all tasks run as otherwise, made if it is missing; the server must run as
    #: root. `None`: the server's own.
    task_user: str | None = None
    #: The program that runs images, as `docker` or `podman`; `None`: images are not used.
    container_runner: str | None = None
    #: Images that the sandbox enters by itself; `None`: there are none.
    image_folder: Path | None = None
    #: How much of each attempt's log is kept; the oldest lines are dropped first.
    log_bytes: int = 64 * MEBIBYTE
    #: How long finished attempts are kept, with their logs and results.
    keep_days: int = 30
    #: Folders of this machine that `file://` URLs can name; empty: such URLs are refused.
    data_folders: tuple[Path, ...] = ()

    @property
    def unpacked_images(self) -> Path:
        """The folder in which archives of the image folder are unpacked."""
        return self.folder / "images"

    def resolved(self) -> LocalOptions:
        """The same with absolute paths, because supervisors run in another folder."""
        runner = self.container_runner
        return msgspec.structs.replace(
            self,
            folder=self.folder.resolve(),
            hidden=tuple(each.resolve() for each in self.hidden),
            data_folders=tuple(each.resolve() for each in self.data_folders),
            image_folder=None if self.image_folder is None else self.image_folder.resolve(),
            container_runner=str(Path(runner).resolve()) if runner and "/" in runner else runner,
        )
