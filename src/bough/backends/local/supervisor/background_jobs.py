"""The slow work of a supervisor: preparing tasks, copying data, removing files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence

import msgspec

from bough.backends.local.attempt_folder import AttemptFolder, folders_at
from bough.backends.local.data.copying import copy_files, is_empty_move
from bough.backends.local.data.removal import remove
from bough.backends.local.errors import NoRoom, lacks_room
from bough.backends.local.preparation.prepare_task import Place, clean_up, prepare
from bough.backends.local.supervisor.instructions import Setup
from bough.backends.local.supervisor.supervised_task import SupervisedTask
from bough.backends.local.task_command import Copy
from bough.errors import BoughError

_COMMAND_S = 60
#: How many bytes of files are written here, and not in another process.
_FILE_BYTES = 2**20
_SECRETS = msgspec.json.Decoder(dict[str, dict[str, str]])


def prepare_all(setup: Setup, tasks: Sequence[SupervisedTask]) -> bytes:
    """Prepare some tasks; the commands to run, in the same order."""
    commands: list[msgspec.Struct] = []
    for task in tasks:
        try:
            commands.append(_prepare(setup, task))
        except (BoughError, OSError) as error:
            kind = NoRoom if lacks_room(error) else BoughError
            raise kind(blame(task, str(error))) from None
    return msgspec.json.encode(commands)


def takes_long(task: SupervisedTask) -> bool:
    """Whether its preparation can take too long to block for it."""
    spec = task.order.launch.spec
    if spec is None:
        return False
    return (
        bool(spec.inputs or spec.project)
        or sum(len(each.contents) for each in spec.files) > _FILE_BYTES
    )


def load_stores(tasks: Iterable[SupervisedTask]) -> None:
    """Load what copies from and to object stores, if tasks have any, for all forks from now on."""
    specs = (task.order.launch.spec for task in tasks)
    if any(each is not None and each.opens_stores for each in specs):
        import bough.backends.local.data.object_store_copying  # noqa: F401, PLC0415


def copy_all(copies: Iterable[Copy], before: Sequence[str] = ()) -> bytes:
    """Make copies that last, one after the other.

    Before that, run the command that removes a container.
    """
    if before:
        import subprocess  # noqa: PLC0415 - see supervisor.fork_server

        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(  # noqa: S603 - made by this backend
                before,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_COMMAND_S,
                check=False,
            )
    for each in copies:
        _copy(each, durably=not is_empty_move(each))
    return b""


def clean_up_folders(folders: Iterable[AttemptFolder]) -> bytes:
    """Remove what is not needed after the end of tasks."""
    for each in folders:
        with contextlib.suppress(OSError):
            each.secrets.unlink(missing_ok=True)
            clean_up(each.task)
            if os.path.lexists(each.stores):
                remove(each.stores)
    return b""


def blame(task: SupervisedTask, reason: str) -> str:
    """Say which task is the reason that its gang does not start."""
    return f"Task {task.name} could not be started: {reason}"


def _prepare(setup: Setup, task: SupervisedTask) -> msgspec.Struct:
    folder = task.folder
    # Who can enter it is decided by the folders above.
    try:
        os.mkdir(folder.task, 0o711)
    except FileExistsError:
        # Files of an earlier supervisor are not used.
        remove(folder.task)
        os.mkdir(folder.task, 0o711)
    launch = task.order.launch
    with contextlib.suppress(FileNotFoundError):
        secrets = _SECRETS.decode(folder.secrets.read_bytes())
        launch = msgspec.structs.replace(launch, secrets=secrets)
    place = Place(
        setup.options,
        setup.sandbox,
        folder.task,
        task.order.workflow_id,
        resolver=_resolver(setup, task),
        progress=folder.stores,
    )
    command = prepare(place, launch, task.accepted.gpu_indices)
    for each in command.inputs:
        _copy(each)
    environment = command.environment | {"BOUGH_ATTEMPT": task.attempt}
    return msgspec.structs.replace(command, environment=environment)


def _copy(copy: Copy, *, durably: bool = False) -> None:
    """Copy within the files of this machine, or from and to a pool's data or an object store."""
    if copy.from_pool is not None or copy.to_pool is not None:
        _copy_pool_data(copy)
    elif copy.from_store is not None or copy.to_store is not None:
        _copy_objects(copy)
    else:
        copy_files(copy, durably=durably)


# Databases and HTTP are loaded by the processes that use them: what a supervisor has in its memory
# is paid for by every fork of it.


def _copy_pool_data(copy: Copy) -> None:
    from bough.backends.local.pool_data.folder_copying import fetch_tree, store_tree  # noqa: PLC0415

    if copy.from_pool is not None:
        fetch_tree(copy, copy.from_pool)
    elif copy.to_pool is not None:
        store_tree(copy, copy.to_pool)


def _copy_objects(copy: Copy) -> None:
    from bough.backends.local.data.object_store_copying import (  # noqa: PLC0415
        fetch_from_store,
        send_to_store,
    )

    if copy.from_store is not None:
        fetch_from_store(copy, copy.from_store)
    elif copy.to_store is not None:
        send_to_store(copy, copy.to_store)


def _resolver(setup: Setup, task: SupervisedTask) -> str:
    """What it sees as /etc/resolv.conf; empty: what this machine has."""
    network = setup.network
    if network is None or network.slirp is None or task.order.shares_host_network:
        return ""
    return str(folders_at(setup.options.folder).resolver)
