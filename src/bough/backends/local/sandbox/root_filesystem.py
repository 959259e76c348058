"""Builds the root file system that a task sees, in a mount namespace of its own.

The root is a small file system in memory. The machine's top-level folders are mounted into it,
read-only and with everything mounted below them, except for those that a task has for itself.
Links that a user could have made are never followed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from bough.backends.local.data.paths import make_below, open_below, real_path
from bough.backends.local.errors import Unstartable
from bough.backends.local.sandbox import syscalls
from bough.backends.local.sandbox.devices import ACCELERATORS
from bough.backends.local.sandbox.etc_files import add_missing
from bough.backends.local.sandbox.syscalls import read_mounts
from bough.backends.local.task_command import Mount, Sandbox, SandboxKind

#: Top-level folders that are not the machine's.
OWN = frozenset({"dev", "proc", "run", "tmp"})
#: Enough for what a task writes beside the mounted folders, and not for its data.
ROOT_OPTIONS = "size=256m,mode=755"
_DEVICES = ("full", "null", "random", "tty", "urandom", "zero")
_LINKS = (
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
)
#: What programs need of the machine's /run; the rest belongs to its services.
_RUNNING = ("/run/nvidia-persistenced", "/run/nvidia-fabricmanager", "/run/opengl-driver")
#: Parts of /proc by which root could change the machine.
_SETTINGS = ("acpi", "bus", "fs", "irq", "scsi", "sys", "sysrq-trigger")
_RESOLVER = Path("/etc/resolv.conf")
#: The same numbers as those of mount(2).
_SAFE = syscalls.MOUNT_NOSUID | syscalls.MOUNT_NODEV
#: What a mount keeps when it is mounted anew.
_FLAGS = {
    "nosuid": syscalls.MS_NOSUID,
    "nodev": syscalls.MS_NODEV,
    "noexec": syscalls.MS_NOEXEC,
    "noatime": syscalls.MS_NOATIME,
    "nodiratime": syscalls.MS_NODIRATIME,
    "relatime": syscalls.MS_RELATIME,
}


def lay_out(sandbox: Sandbox) -> None:
    """Mount all that the task sees of the machine, in the new mount namespace of this process."""
    owner = os.stat(sandbox.temporary)
    before = os.umask(0o022)
    syscalls.mount("none", "/", "", syscalls.MS_REC | syscalls.MS_PRIVATE)
    syscalls.mount("none", sandbox.root, "tmpfs", _flags(), ROOT_OPTIONS)
    # It is below a folder that is mounted into it, and must not be mounted with that.
    syscalls.mount("none", sandbox.root, "", syscalls.MS_UNBINDABLE)
    root = _NewRoot(sandbox)
    try:
        os.chown(sandbox.root, owner.st_uid, owner.st_gid)
        root.show_machine()
        root.hide(sandbox.hidden)
        root.show_devices(frozenset(sandbox.hidden_devices))
        root.show_running()
        root.show_image_files()
        root.show_resolver(sandbox.resolver)
        root.bind(sandbox.temporary, ("tmp",), writable=True)
        root.share_temporary(sandbox.temporary)
        for each in sandbox.mounts:
            root.show(each)
    finally:
        os.umask(before)
        root.close()


def move_in(sandbox: Sandbox) -> None:
    """Make what was laid out the root of this process, which is in a new process namespace."""
    root = _NewRoot(sandbox)
    try:
        root.show_processes()
        os.fchdir(root.descriptor)
    finally:
        root.close()
    syscalls.pivot_here()
    _read_own_nothing()


def find_running() -> list[str]:
    """The folders of the machine's /run that a task needs."""
    found = {*_RUNNING, os.path.dirname(real_path(_RESOLVER))}
    return sorted(each for each in found if each.startswith("/run/") and os.path.isdir(each))


def find_resolver() -> Path | None:
    """The file that says how host names are resolved, without links; `None`: there is none."""
    found = real_path(_RESOLVER)
    return found if found.is_file() else None


def _read_own_nothing() -> None:
    """Have the task's own /dev/null for input: root could change the machine's if that was open."""
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    os.close(nothing)


class _NewRoot:
    """The new root while it is built."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._path = sandbox.root
        self._kind = sandbox.kind
        self._image = sandbox.image
        self.descriptor = open_below("/", _parts(sandbox.root))
        self._taken = OWN | {_parts(each.target)[0] for each in sandbox.mounts}

    def close(self) -> None:
        """Close it."""
        os.close(self.descriptor)

    def make(self, name: str) -> str:
        """The path of a folder of the new root itself, which is made if it is not there."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=self.descriptor)
        return f"{self._path}/{name}"

    def show_machine(self) -> None:
        """Mount the folders of the machine, or of an image, and make them read-only."""
        for entry in sorted(os.scandir(self._image or "/"), key=lambda each: each.name):
            if entry.name in self._taken:
                continue
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), entry.name, dir_fd=self.descriptor)
            elif entry.is_dir(follow_symlinks=False):
                target = self.make(entry.name)
                syscalls.mount(entry.path, target, "", syscalls.MS_BIND | syscalls.MS_REC)
        _protect(self.descriptor, self._path)

    def hide(self, hidden: tuple[str, ...]) -> None:
        """Mount something empty over what is hidden; none of it is in an image."""
        for each in () if self._image else hidden:
            parts = _parts(each)
            if not parts or parts[0] in self._taken:
                continue
            with contextlib.suppress(FileNotFoundError), self._opened(parts[:-1]) as above:
                mode = os.stat(parts[-1], dir_fd=above, follow_symlinks=False).st_mode
                target = "/".join((self._path, *parts))
                if stat.S_ISDIR(mode):
                    nothing = _flags(syscalls.MS_RDONLY)
                    syscalls.mount("none", target, "tmpfs", nothing, "size=4k,mode=555")
                elif not stat.S_ISLNK(mode):
                    syscalls.mount(os.devnull, target, "", syscalls.MS_BIND)
                    self._protect_device(above, parts[-1], target)

    def show_devices(self, hidden: frozenset[str]) -> None:
        """Add the devices that every program can use, and its accelerators."""
        syscalls.mount("none", self.make("dev"), "tmpfs", syscalls.MS_NOSUID, "size=1m,mode=755")
        seen = [
            each
            for each in os.scandir("/dev")
            if each.name in _DEVICES or each.name.startswith(ACCELERATORS)
        ]
        for entry in sorted(seen, key=lambda each: each.name):
            self._show_device(entry, hidden)
        terminals, shared = self.make("dev/pts"), self.make("dev/shm")
        with self._opened(("dev",)) as devices:
            for name, leads in _LINKS:
                os.symlink(leads, name, dir_fd=devices)
            # Devices of the machine are among them, whose mode and owner root could change.
            # What is mounted from here on stays writable.
            _make_read_only(devices, f"{self._path}/dev", syscalls.MOUNT_NOSUID)
        pseudo_terminals = "newinstance,ptmxmode=0666,mode=620"
        syscalls.mount("none", terminals, "devpts", syscalls.MS_NOSUID, pseudo_terminals)
        syscalls.mount("none", shared, "tmpfs", _flags(), "mode=1777")

    def show_running(self) -> None:
        """Add what it needs to resolve host names and to use GPUs."""
        self.make("run")
        for each in find_running():
            self.bind(each, _parts(each), writable=False)

    def show_image_files(self) -> None:
        """Add what an image lacks in /etc, unless a mount is in there."""
        if not self._image or "etc" in self._taken:
            return
        # Some kernels have no overlays for users; there the image stays as it is.
        with contextlib.suppress(OSError):
            path = self.make("etc")
            with self._opened(("etc",)) as etc:
                add_missing(etc, path)

    def show_resolver(self, path: str) -> None:
        """Resolve host names as its network does, where the machine has such a file."""
        if not self._image and not path:
            return
        target = find_resolver()
        if self._image:
            shown = path or ("" if target is None else str(target))
            # Where nothing could be added to an image without such a file, it resolves as it does.
            with contextlib.suppress(OSError):
                self.bind(shown, _RESOLVER.parts[1:], writable=False)
        elif target is not None:
            self.bind(path, target.parts[1:], writable=False)

    def show_processes(self) -> None:
        """Add /proc, with the settings of the machine read-only."""
        processes = self.make("proc")
        flags = _flags(syscalls.MS_NOEXEC)
        syscalls.mount("proc", processes, "proc", flags)
        bound: list[str] = []
        for name in _SETTINGS:
            with contextlib.suppress(FileNotFoundError):
                path = f"{processes}/{name}"
                syscalls.mount(path, path, "", syscalls.MS_BIND)
                bound.append(path)
        try:
            # All at once, and then /proc itself, which a task writes to, is writable again.
            with self._opened(("proc",)) as mounted:
                syscalls.set_mount(mounted, add=syscalls.MOUNT_RDONLY, recursive=True)
                syscalls.set_mount(mounted, remove=syscalls.MOUNT_RDONLY)
        except OSError as error:
            if error.errno != errno.ENOSYS:
                raise
            for path in bound:
                _remount(path, flags | syscalls.MS_RDONLY)

    def share_temporary(self, temporary: str) -> None:
        """Make /var/tmp the task's own as well, where there is such a folder."""
        with contextlib.suppress(OSError):
            self.bind(temporary, ("var", "tmp"), writable=True)

    def show(self, mount: Mount) -> None:
        """Add a mount of the sandbox."""
        parts = _parts(mount.target)
        try:
            self.bind(mount.source, parts, writable=mount.writable)
        except OSError as error:
            raise Unstartable(
                f"{mount.source} cannot be shown at {mount.target}: {error.strerror}"
            ) from error

    def bind(self, source: str, parts: tuple[str, ...], *, writable: bool) -> None:
        """Mount a folder or file of the machine, safe from links that are made meanwhile."""
        *above, name = _parts(source)
        folder = open_below("/", tuple(above))
        try:
            shown = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=folder)
        finally:
            os.close(folder)
        try:
            mode = os.fstat(shown).st_mode
            is_folder = stat.S_ISDIR(mode)
            if not is_folder and not stat.S_ISREG(mode):
                raise OSError(errno.EINVAL, "it is neither a folder nor a file", source)
            target = self._make_target(parts, is_folder=is_folder)
            attributes = _SAFE if writable else _SAFE | syscalls.MOUNT_RDONLY
            try:
                attached = _attach(shown, target, attributes)
                if not attached:
                    syscalls.mount(_of(shown), _of(target), "", syscalls.MS_BIND)
            finally:
                os.close(target)
        finally:
            os.close(shown)
        if not attached:
            self._change_below(parts, attributes)

    def _protect_device(self, folder: int, name: str, path: str) -> None:
        """Let no task change the mode or owner of a device that was mounted there."""
        mounted = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=folder)
        try:
            _make_read_only(mounted, path, syscalls.MOUNT_NOSUID)
        finally:
            os.close(mounted)

    def _change_below(self, parts: tuple[str, ...], attributes: int) -> None:
        with self._opened(parts[:-1]) as above:
            bound = os.open(parts[-1], os.O_PATH | os.O_NOFOLLOW, dir_fd=above)
        try:
            _change(bound, attributes)
        finally:
            os.close(bound)

    def _make_target(self, parts: tuple[str, ...], *, is_folder: bool) -> int:
        if is_folder:
            return make_below(self.descriptor, parts)
        above = make_below(self.descriptor, parts[:-1])
        try:
            made = os.O_CREAT | os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
            os.close(os.open(parts[-1], made, 0o644, dir_fd=above))
            return os.open(parts[-1], os.O_PATH | os.O_NOFOLLOW, dir_fd=above)
        finally:
            os.close(above)

    def _show_device(self, entry: os.DirEntry[str], hidden: frozenset[str]) -> None:
        if entry.path in hidden:
            return
        target = f"{self._path}{entry.path}"
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), target)
            return
        if entry.name in _DEVICES and self._copy_device(entry, target):
            return
        if entry.is_dir(follow_symlinks=False):
            os.mkdir(target)
            if any(each.startswith(f"{entry.path}/") for each in hidden):
                for below in os.scandir(entry.path):
                    self._show_device(below, hidden)
                return
        else:
            os.mknod(target, 0o644)
        syscalls.mount(entry.path, target, "", syscalls.MS_BIND | syscalls.MS_REC)

    def _copy_device(self, entry: os.DirEntry[str], target: str) -> bool:
        """Make the same device in the file system of this task, where this process may.

        That is less work for the kernel than a mount, and the task cannot change the machine's.
        """
        if self._kind is not SandboxKind.NAMESPACES:
            return False
        found = entry.stat(follow_symlinks=False)
        try:
            os.mknod(target, found.st_mode, found.st_rdev)
        except PermissionError:
            # A root that may not make devices can still mount them.
            return False
        os.chown(target, found.st_uid, found.st_gid)
        # The mode that it was made with lacks what the mask of this process forbids.
        os.chmod(target, stat.S_IMODE(found.st_mode))
        return True

    @contextlib.contextmanager
    def _opened(self, parts: tuple[str, ...]) -> Iterator[int]:
        descriptor = open_below(self.descriptor, parts)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _protect(root: int, path: str) -> None:
    """Make all that is mounted below the root read-only, but not the root itself."""
    if _make_read_only(root, path, _SAFE):
        syscalls.set_mount(root, remove=syscalls.MOUNT_RDONLY)
    else:
        _remount(path, _SAFE)


def _make_read_only(descriptor: int, path: str, more: int) -> bool:
    """Make what is mounted at a path, and all below it, read-only, with more attributes.

    Whether the kernel could do it at once, as since 5.12.
    """
    attributes = more | syscalls.MOUNT_RDONLY
    try:
        syscalls.set_mount(descriptor, add=attributes, recursive=True)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        _remount_all(path, attributes)
        return False
    return True


def _attach(source: int, target: int, attributes: int) -> bool:
    """Mount something open over something open; whether the kernel can, as since 5.12.

    It has its attributes before anything can see it.
    """
    try:
        mount = syscalls.clone_mount(source)
        try:
            syscalls.set_mount(mount, add=attributes)
            syscalls.attach_mount(mount, target)
        finally:
            os.close(mount)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        return False
    return True


def _change(descriptor: int, attributes: int) -> None:
    try:
        syscalls.set_mount(descriptor, add=attributes)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        _remount(_of(descriptor), attributes)


def _remount_all(path: str, attributes: int) -> None:
    """The same for kernels before 5.12, one mount at a time."""
    text = Path("/proc/self/mountinfo").read_text(errors="surrogateescape")
    for each in read_mounts(text):
        if each.path == path or each.path.startswith(f"{path}/"):
            kept = sum(_FLAGS[name] for name in each.options if name in _FLAGS)
            _remount(each.path, kept | attributes)


def _remount(path: str, flags: int) -> None:
    syscalls.mount("none", path, "", syscalls.MS_BIND | syscalls.MS_REMOUNT | flags)


def _parts(path: str) -> tuple[str, ...]:
    """The parts of an absolute path."""
    return tuple(each for each in path.split("/") if each not in {"", "."})


def _of(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"


def _flags(more: int = 0) -> int:
    return syscalls.MS_NOSUID | syscalls.MS_NODEV | more
