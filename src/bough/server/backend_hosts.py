"""Which backend runs the tasks, and on which nodes, as the settings say.

Backends are imported when they are chosen: what one of them needs, the others do without.
"""

from __future__ import annotations

import ipaddress
import os
import pwd
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from bough.errors import Invalid
from bough.formats.kubernetes.nodes import read_nodes
from bough.formats.yaml.documents import read_documents
from bough.model.backend import Backend, TaskFiles
from bough.model.cluster import Node
from bough.model.pool import OfferedNode
from bough.server.backend_file import (
    KAI,
    BackendSettings,
    KubernetesSettings,
    VirtualSettings,
    chosen_backends,
    has_local,
)
from bough.server.settings import POD_FOLDER, TASK_USER, Settings

#: How nice the server's session is to others, from -20 to 19.
GO_FIRST = "-10"


class Host(NamedTuple):
    """A backend, and what its machine cannot do."""

    backend: Backend
    warnings: tuple[str, ...] = ()


def running_lock(settings: Settings) -> Path | None:
    """The file that is locked while tasks run on this machine; `None`: none ever do."""
    if not has_local(settings):
        return None
    from bough.backends.local.attempt_folder import Folders  # noqa: PLC0415

    return Folders(settings.task_folder).running


def task_files(settings: Settings, now_ms: Callable[[], int]) -> dict[str, TaskFiles]:
    """What tasks of each backend wrote, for a process that orders nothing."""
    return {each.name: _files(settings, each, now_ms) for each in chosen_backends(settings)}


def _files(settings: Settings, chosen: BackendSettings, now_ms: Callable[[], int]) -> TaskFiles:
    if isinstance(chosen.options, VirtualSettings):
        from bough.backends.virtual import NoFiles  # noqa: PLC0415

        return NoFiles(chosen.name)
    if isinstance(chosen.options, KubernetesSettings):
        from bough.backends.kubernetes.log_folders import LogFolders  # noqa: PLC0415
        from bough.backends.kubernetes.pod_log_files import PodFiles  # noqa: PLC0415

        return PodFiles(LogFolders(_pod_folder(settings, chosen), settings.keep_days), chosen.name)
    from bough.backends.local.options import LocalOptions  # noqa: PLC0415
    from bough.backends.local.task_files import LocalTaskFiles  # noqa: PLC0415

    return LocalTaskFiles(LocalOptions(settings.task_folder), now_ms, chosen.name)


def _pod_folder(settings: Settings, chosen: BackendSettings) -> Path:
    return settings.data / POD_FOLDER / chosen.name


@contextmanager
def open_hosts(
    settings: Settings, now_ms: Callable[[], int], wake: Callable[[], None], site_id: str
) -> Iterator[tuple[Host, ...]]:
    """Open all backends, and close them afterwards; what they run goes on."""
    with ExitStack() as opened:
        yield tuple(
            opened.enter_context(_open(settings, each, now_ms, wake, site_id))
            for each in chosen_backends(settings)
        )


@contextmanager
def _open(
    settings: Settings,
    chosen: BackendSettings,
    now_ms: Callable[[], int],
    wake: Callable[[], None],
    site_id: str,
) -> Iterator[Host]:
    if isinstance(chosen.options, VirtualSettings):
        yield _virtual(settings, chosen.name, chosen.options, now_ms)
    elif isinstance(chosen.options, KubernetesSettings):
        with _kubernetes(settings, chosen, chosen.options, now_ms, wake, site_id) as host:
            yield host
    else:
        with _local(settings, chosen.name, now_ms, wake) as host:
            yield host


@contextmanager
def _local(
    settings: Settings, name: str, now_ms: Callable[[], int], wake: Callable[[], None]
) -> Iterator[Host]:
    from bough.backends.local.backend import LocalBackend  # noqa: PLC0415
    from bough.backends.local.options import LocalOptions, TaskNetwork  # noqa: PLC0415

    options = LocalOptions(
        folder=settings.task_folder,
        gpus=settings.gpus,
        cpu_milli=settings.cpu_milli,
        memory_bytes=settings.memory_bytes,
        storage_bytes=settings.storage_bytes,
        nodes=() if settings.nodes is None else _offered(settings.nodes),
        hidden=_hidden(settings),
        private=settings.private,
        network=TaskNetwork(settings.task_network),
        as_user=settings.as_user,
        task_user=_task_user(settings),
        container_runner=settings.container_runner,
        image_folder=settings.image_folder,
        processes=settings.task_processes,
        log_bytes=settings.log_bytes,
        keep_days=settings.keep_days,
        data_folders=settings.data_folders,
    )
    go_first()
    backend = LocalBackend(options, now_ms, wake, name)
    try:
        yield Host(backend, (*backend.warnings, *_about_proxies(settings)))
    finally:
        backend.close()


@contextmanager
def _kubernetes(
    settings: Settings,
    backend_settings: BackendSettings,
    chosen: KubernetesSettings,
    now_ms: Callable[[], int],
    wake: Callable[[], None],
    site_id: str,
) -> Iterator[Host]:
    from bough.backends.kubernetes.backend import KubernetesBackend  # noqa: PLC0415
    from bough.backends.kubernetes.kai.backend import KaiBackend  # noqa: PLC0415
    from bough.backends.kubernetes.options import (  # noqa: PLC0415
        VOLUME_IMAGE,
        DataVolume,
        KubernetesOptions,
    )
    from bough.kube.client import KubeClient  # noqa: PLC0415
    from bough.kube.kubeconfig import find_access  # noqa: PLC0415

    volume = None
    if chosen.volume is not None:
        volume = DataVolume(chosen.volume, chosen.volume_image or VOLUME_IMAGE)
    options = KubernetesOptions(
        folder=_pod_folder(settings, backend_settings),
        site=site_id,
        namespace=chosen.namespace,
        start_timeout_s=chosen.start_timeout,
        volume=volume,
        log_bytes=settings.log_bytes,
        keep_days=settings.keep_days,
    )
    kubeconfig = None if chosen.kubeconfig is None else str(chosen.kubeconfig)
    client = KubeClient(find_access(kubeconfig, chosen.context), options.workers + 4)
    kind = KaiBackend if chosen.decider == KAI else KubernetesBackend
    backend = kind(options, client, now_ms, wake, backend_settings.name)
    backend.begin()
    try:
        yield Host(backend)
    finally:
        backend.close()


def _task_user(settings: Settings) -> str | None:
    """The account that tasks run as; a server that is not root has only its own."""
    if settings.task_user is not None and settings.as_user:
        raise Invalid("--task-user and --as-user cannot be used together.")
    if settings.task_user is None and os.geteuid() == 0 and not settings.as_user:
        return TASK_USER
    return settings.task_user


def _hidden(settings: Settings) -> tuple[Path, ...]:
    """What no task may see: the server's data, its database, and the login of its user."""
    from bough.client.login import login_path  # noqa: PLC0415

    found = [settings.data, settings.task_folder, settings.credential_key_file]
    found.append(Path(login_path()).parent)
    if os.geteuid() == 0:
        found.append(Path(pwd.getpwuid(0).pw_dir))
    database = settings.address
    if database.startswith("sqlite") or "://" not in database:
        path = database.split(":///", 1)[-1].partition("?")[0]
        found += (Path(path + each) for each in ("", "-wal", "-shm", "-journal"))
    return tuple(found)


def _about_proxies(settings: Settings) -> tuple[str, ...]:
    """A task can send requests from this machine, too."""
    own = ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1")
    return tuple(
        f"requests from {each} are believed, whichever user they name, and programs of this "
        "machine, tasks that share its network too, can send such requests: each of them can act "
        "as any user; run the proxy elsewhere"
        for each in settings.trusted_proxies
        if any(address in each for address in own)
    )


def go_first() -> None:
    """Let a process of the server have its turn where hundreds of tasks want theirs.

    Linux gives every session the same share of the processor. Only root may ask for more; and a
    server in a shell's own session does not, because that would put the shell's other programs
    before everything, too.
    """
    if os.getsid(0) != os.getpid():
        return
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text(GO_FIRST)


def _virtual(
    settings: Settings, name: str, options: VirtualSettings, now_ms: Callable[[], int]
) -> Host:
    from bough.backends.virtual import VirtualBackend, make_nodes  # noqa: PLC0415

    sizes = (settings.cpu_milli, settings.memory_bytes, settings.storage_bytes)
    if settings.backends is None and any(each is not None for each in sizes):
        raise Invalid("--cpus, --memory and --storage are for the backend local; use --nodes.")
    told = options.nodes
    nodes = make_nodes(options.gpus) if told is None else _offered(told)
    return Host(VirtualBackend(nodes, now_ms, name))


def _offered(path: Path) -> tuple[OfferedNode, ...]:
    nodes, problems = read_nodes(read_documents([str(path)]))
    if problems:
        lines = tuple(
            f"{each.source}:{each.line}: {each.field}: {each.message}" for each in problems
        )
        raise Invalid(f"The nodes of {path} cannot be used.", details=lines)
    return tuple(map(_offered_node, nodes))


def _offered_node(node: Node) -> OfferedNode:
    other = dict(node.capacity.other)
    return OfferedNode(
        name=node.name,
        gpus=node.capacity.gpus,
        cpu_milli=node.capacity.cpu_milli,
        memory_bytes=node.capacity.memory_bytes,
        storage_bytes=other.get("ephemeral-storage", 0),
        task_slots=node.capacity.pods,
        labels=node.labels,
        cordoned=node.cordoned,
    )
