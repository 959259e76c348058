"""Prepares a task: from a launch to a command that can be run.

Fills in placeholders, writes files and credentials, and decides what the task sees. Everything is
written into the attempt's own folder, before anything of the task runs.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
from pathlib import Path

import msgspec

from bough.backends.local.data.paths import make_below, opened, real_path, shown, write_new
from bough.backends.local.data.removal import remove_from
from bough.backends.local.errors import Unstartable
from bough.backends.local.images.image_folder import Image, ImageFolder
from bough.backends.local.options import LocalOptions
from bough.backends.local.preparation.accounts import find_account, has_account
from bough.backends.local.preparation.container import Containment, contain
from bough.backends.local.preparation.credentials import find_variables, write_credentials
from bough.backends.local.preparation.environment import (
    check_arguments,
    check_variables,
    expand,
    identify,
    usual_environment,
)
from bough.backends.local.preparation.layout import (
    SEEN_OUTPUT,
    SEEN_TEMPORARY,
    SEEN_WORK,
    Surroundings,
    TaskLayout,
)
from bough.backends.local.preparation.transfers import Transfers, checkpointed
from bough.backends.local.sandbox.devices import plan_devices
from bough.backends.local.sandbox.sandbox import enters_images
from bough.backends.local.task_command import (
    DeviceRules,
    Mount,
    Sandbox,
    SandboxKind,
    TaskCommand,
    TaskLimits,
    UserAccount,
)
from bough.backends.placeholders import Meaning
from bough.model.backend import Launch
from bough.model.task_template import FileSpec, TaskTemplate

_FILE = 0o644
#: The folder of the backend over which each task's root is mounted, in mounts of its own.
VIEW = "view"


class Place(msgspec.Struct, frozen=True):
    """Where a task will run."""

    options: LocalOptions
    #: `None`: it sees the machine as it is.
    sandbox: SandboxKind | None
    #: An empty folder for this attempt.
    folder: Path
    workflow_id: str
    #: A file to see as /etc/resolv.conf; empty: what this machine has.
    resolver: str = ""
    #: A folder beside its own, for what copies from and to object stores leave for the next try.
    progress: Path = Path()


def prepare(place: Place, launch: Launch, gpus: tuple[int, ...] = ()) -> TaskCommand:
    """Prepare a task, or say what is wrong with it."""
    try:
        return _prepare(place, launch, gpus)
    except OSError as error:
        raise Unstartable(
            f"the folder of the task could not be made ready: {error.strerror or error}"
        ) from error


def clean_up(folder: Path) -> None:
    """Remove what only a running task needs, after its end."""
    with contextlib.suppress(OSError), opened(real_path(folder)) as above:
        for name in ("secrets", "root", "tmp", "work", "input", "view"):
            with contextlib.suppress(OSError):
                remove_from(above, name)


def _prepare(place: Place, launch: Launch, gpus: tuple[int, ...]) -> TaskCommand:
    image = _find_image(place, launch)
    machine = Path("/") if image is None else image.root
    layout = TaskLayout(real_path(place.folder), _surroundings(place, launch), machine)
    template = _fill(place, launch, layout)
    account = _account(place.options, launch, layout)
    given = template.environment | find_variables(template.credentials, launch.secrets)
    usual = usual_environment(place.options, launch, layout)
    usual |= {} if image is None else image.environment
    own = identify(launch, layout, place.workflow_id, gpus)
    started = _starting_folder(template, layout, image)
    transfers = Transfers(
        place.options,
        layout,
        place.workflow_id,
        launch.pool,
        account,
        launch.user,
        launch.spaces,
        launch.secrets if template.opens_stores else None,
        str(place.progress),
    )
    mounts, inputs = transfers.plan_inputs(template.inputs)
    rules, others = plan_devices(gpus, sandboxed=place.sandbox is not None)
    command = TaskCommand(
        attempt=launch.attempt,
        name=launch.name,
        argv=tuple(expand(each, given | own) for each in (*template.command, *template.args)),
        environment=usual | {"PWD": started} | given | own,
        working_folder=started,
        limits=_limits(place, launch, rules),
        account=account,
        inputs=(*transfers.plan_project(template.project), *inputs),
        checkpoints=transfers.plan_checkpoints(template.checkpoints),
        outputs=transfers.plan_outputs(template.outputs, launch.name),
    )
    _check(launch, command, layout)
    _make_folders(layout, template, account)
    files = _write_files(template.files, layout, account)
    secrets = write_credentials(template.credentials, launch.secrets, layout, account)
    checkpointed = _make_checkpointed(template, layout, account)
    mounts = (*_own_mounts(layout), *files, *mounts, *secrets, *checkpointed)
    if layout.surroundings is not Surroundings.CONTAINER:
        sandbox = _sandbox(place, layout, mounts, others)
        return msgspec.structs.replace(command, sandbox=sandbox)
    runner = place.options.container_runner or ""
    return contain(command, Containment(runner, template, mounts, gpus, layout, frozenset(given)))


def _find_image(place: Place, launch: Launch) -> Image | None:
    options, name = place.options, launch.spec.image if launch.spec else None
    if options.image_folder is None or not name:
        return None
    if not enters_images(place.sandbox):
        raise Unstartable(f"image: {shown(name)} cannot be entered by the sandboxes that work here")
    return ImageFolder(options.image_folder, options.unpacked_images).open(name)


def _starting_folder(template: TaskTemplate, layout: TaskLayout, image: Image | None) -> str:
    """Where a task starts: in an image as containers do, unless its own files are elsewhere."""
    relative = any(not each.path.startswith("/") for each in template.files)
    if image is None or template.project is not None or relative:
        return layout.seen_work()
    return image.working_folder


def _surroundings(place: Place, launch: Launch) -> Surroundings:
    if place.options.container_runner is not None and launch.spec and launch.spec.image:
        return Surroundings.CONTAINER
    return Surroundings.MACHINE if place.sandbox is None else Surroundings.SANDBOX


def _fill(place: Place, launch: Launch, layout: TaskLayout) -> TaskTemplate:
    template = launch.spec
    if template is None:
        # There is nothing to run, so the GPUs are held for the given time.
        hold = "infinity" if launch.hold_s is None else str(launch.hold_s)
        return TaskTemplate(command=("sleep", hold))
    seen = tuple(layout.seen_input(number) for number in range(len(template.inputs)))
    uuid = launch.about.get("workflow_uuid", "")
    meaning = Meaning(place.workflow_id, layout.seen_output(), seen, uuid=uuid)
    return meaning.fill_template(template)


def _check(launch: Launch, command: TaskCommand, layout: TaskLayout) -> None:
    check_variables(command.environment)
    if command.argv:
        check_arguments(command.argv)
    elif layout.surroundings is not Surroundings.CONTAINER:
        image = launch.spec.image if launch.spec else None
        unused = f" (its image {shown(image)} is not used here)" if image else ""
        raise Unstartable(
            f"task {shown(launch.name)} has nothing to run{unused}; write for example "
            '`command: ["bash", "-c"]` and `args: ["echo hello"]`'
        )


def _account(options: LocalOptions, launch: Launch, layout: TaskLayout) -> UserAccount | None:
    if not options.as_user:
        return find_account(options.task_user or "") if has_account(options) else None
    if os.geteuid() != 0:
        raise Unstartable(
            "tasks should run as the user who submitted them, which only a server that is root can "
            "do; this one is not"
        )
    if layout.surroundings is Surroundings.MACHINE:
        raise Unstartable(
            "tasks should run as the user who submitted them, which is only possible with a "
            "private view of the machine, and there is none here"
        )
    return find_account(launch.user, "the user who submitted them")


def _limits(place: Place, launch: Launch, devices: DeviceRules) -> TaskLimits:
    if not place.options.limits:
        return TaskLimits()
    return TaskLimits(
        launch.cpu_milli or None,
        launch.memory_bytes or None,
        place.options.processes,
        devices,
        launch.storage_bytes or None,
    )


def _make_folders(layout: TaskLayout, template: TaskTemplate, account: UserAccount | None) -> None:
    """Make the folders that the task needs, no more: some file systems make them slowly."""
    names = ["work", "output"]
    if template.files or template.credentials or template.checkpoints:
        names.append("root")
    with opened(layout.folder) as folder:
        for name in names:
            os.close(make_below(folder, (name,), account=account))
        os.close(make_below(folder, ("tmp",), 0o1777, account))
        if template.credentials or layout.surroundings is Surroundings.CONTAINER:
            os.close(make_below(folder, ("secrets",), 0o700))
        for number in range(len(template.inputs)):
            os.close(make_below(folder, ("input", str(number))))


def _write_files(
    files: tuple[FileSpec, ...], layout: TaskLayout, account: UserAccount | None
) -> tuple[Mount, ...]:
    """Write the files of a spec; for a container, those elsewhere are mounted."""
    mounts: list[Mount] = []
    for number, each in enumerate(files):
        what = f"files[{number}]"
        spot = layout.locate(each.path, what)
        try:
            write_new(spot.base, spot.parts, _contents(each, what), _FILE, account)
        except FileExistsError:
            raise Unstartable(f"{what}: {shown(each.path)} already exists") from None
        except NotADirectoryError:
            raise Unstartable(
                f"{what}: {shown(each.path)} is below something that is a file"
            ) from None
        if layout.surroundings is Surroundings.CONTAINER and spot.base == layout.root:
            mounts.append(Mount(str(spot.path), spot.seen, writable=True))
    return tuple(mounts)


def _contents(file: FileSpec, what: str) -> bytes:
    if not file.base64:
        return file.contents.encode(errors="replace")
    try:
        return base64.b64decode("".join(file.contents.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise Unstartable(f"{what}: the contents are not valid base64: {error}") from None


def _own_mounts(layout: TaskLayout) -> tuple[Mount, ...]:
    if layout.surroundings is Surroundings.MACHINE:
        return ()
    mounts = (
        Mount(str(layout.work), SEEN_WORK, writable=True),
        Mount(str(layout.output), SEEN_OUTPUT, writable=True),
    )
    if layout.surroundings is Surroundings.SANDBOX:
        return mounts
    return (Mount(str(layout.temporary), SEEN_TEMPORARY, writable=True), *mounts)


def _make_checkpointed(
    template: TaskTemplate, layout: TaskLayout, account: UserAccount | None
) -> tuple[Mount, ...]:
    """Make the folders of checkpoints, which are read while the task runs."""
    mounts: list[Mount] = []
    contained = layout.surroundings is Surroundings.CONTAINER
    for number, each in enumerate(template.checkpoints):
        spot = layout.locate(checkpointed(each), f"checkpoint[{number}]")
        if spot.base == layout.root:
            parts = spot.parts if contained else spot.parts[:1]
            with opened(layout.root) as root:
                os.close(make_below(root, parts, account=account))
            if contained:
                mounts.append(Mount(str(spot.path), spot.seen, writable=True))
    return tuple(mounts)


def _sandbox(
    place: Place, layout: TaskLayout, mounts: tuple[Mount, ...], hidden_devices: tuple[str, ...]
) -> Sandbox | None:
    if layout.surroundings is not Surroundings.SANDBOX or place.sandbox is None:
        return None
    own = real_path(place.options.folder)
    hidden = (own, *(real_path(each) for each in place.options.hidden))
    view = f"{own}/{VIEW}"
    with contextlib.suppress(FileExistsError):
        os.mkdir(view, 0o700)
    names = sorted(os.listdir(layout.root)) if layout.root.exists() else ()
    new = (Mount(str(layout.root / name), f"/{name}", writable=True) for name in names)
    return Sandbox(
        temporary=str(layout.temporary),
        root=view,
        kind=place.sandbox,
        mounts=(*new, *mounts),
        hidden=tuple(map(str, hidden)),
        hidden_devices=hidden_devices,
        resolver=place.resolver,
        image="" if layout.machine == Path("/") else str(layout.machine),
    )
