"""System calls of Linux that Python does not have: mounts, namespaces and privileges.

Each raises OSError as those of `os` do.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_NOATIME = 0x400
MS_NODIRATIME = 0x800
MS_BIND = 0x1000
MS_REC = 0x4000
MS_UNBINDABLE = 0x20000
MS_PRIVATE = 0x40000
MS_RELATIME = 0x200000

MOUNT_RDONLY = 0x1
MOUNT_NOSUID = 0x2
MOUNT_NODEV = 0x4

_MNT_DETACH = 2
_AT_RECURSIVE = 0x8000
_AT_EMPTY_PATH = 0x1000
#: The same numbers on all kinds of processors.
_SYS_OPEN_TREE, _SYS_MOVE_MOUNT, _SYS_MOUNT_SETATTR = 428, 429, 442
_OPEN_TREE_CLONE, _OPEN_TREE_CLOEXEC = 0x1, os.O_CLOEXEC
_MOVE_FROM_OPEN, _MOVE_TO_OPEN = 0x04, 0x40
#: By the kind of processor.
_SYS_KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "ppc64le": 271, "s390x": 280}
_KEYCTL_JOIN_SESSION_KEYRING = 1
_PR_SET_PDEATHSIG = 1
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_CAPABILITY_VERSION = 0x20080522
_CAPABILITIES = 64


class _MountAttributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("user_namespace", ctypes.c_uint64),
    )


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapabilitySet(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


class Mounted(NamedTuple):
    """One line of /proc/self/mountinfo."""

    #: The part of the file system that is mounted.
    root: str
    path: str
    #: Of this mount, as `ro` and `nosuid`.
    options: frozenset[str]
    kind: str
    #: Of the file system.
    system_options: frozenset[str]


_libc = ctypes.CDLL(None, use_errno=True)
_libc.signal.argtypes, _libc.signal.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
_SIG_ERR = ctypes.c_void_p(-1).value
_libc.prctl.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)


def unshare(flags: int) -> None:
    """Enter new namespaces."""
    _call(_libc.unshare, flags)


def set_namespace(descriptor: int, kind: int) -> None:
    """Enter a namespace that is there."""
    _call(_libc.setns, ctypes.c_int(descriptor), ctypes.c_int(kind))


def become_own_root() -> None:
    """Enter a user namespace, in which this process can mount and is still the same user."""
    user, group = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        Path("/proc/self", name).write_text(text)


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount something."""
    _call(
        _libc.mount,
        os.fsencode(source),
        os.fsencode(target),
        kind.encode(),
        ctypes.c_ulong(flags),
        options.encode() or None,
        path=target,
    )


def unmount(target: str) -> None:
    """Detach what is mounted there last."""
    _call(_libc.umount2, os.fsencode(target), _MNT_DETACH, path=target)


def set_mount(descriptor: int, *, add: int = 0, remove: int = 0, recursive: bool = False) -> None:
    """Change the attributes of the mount that an open folder or file is on."""
    attributes = _MountAttributes(add, remove, 0, 0)
    flags = _AT_EMPTY_PATH | (_AT_RECURSIVE if recursive else 0)
    _call(
        _libc.syscall,
        ctypes.c_long(_SYS_MOUNT_SETATTR),
        ctypes.c_int(descriptor),
        b"",
        ctypes.c_uint(flags),
        ctypes.byref(attributes),
        ctypes.c_size_t(ctypes.sizeof(attributes)),
    )


def clone_mount(descriptor: int) -> int:
    """A mount of an open folder or file that is nowhere yet, as a descriptor."""
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | _AT_EMPTY_PATH
    return _call(
        _libc.syscall,
        ctypes.c_long(_SYS_OPEN_TREE),
        ctypes.c_int(descriptor),
        b"",
        ctypes.c_uint(flags),
    )


def attach_mount(descriptor: int, target: int) -> None:
    """Mount what `clone_mount` made over an open folder or file."""
    _call(
        _libc.syscall,
        ctypes.c_long(_SYS_MOVE_MOUNT),
        ctypes.c_int(descriptor),
        b"",
        ctypes.c_int(target),
        b"",
        ctypes.c_uint(_MOVE_FROM_OPEN | _MOVE_TO_OPEN),
    )


def make_system_call(numbers: Mapping[str, int], *arguments: Any) -> int:
    """Make a system call that the C library does not have, by its number on this processor."""
    number = numbers.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    answer = _libc.syscall(ctypes.c_long(number), *arguments)
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return answer


def read_mounts(text: str) -> Iterator[Mounted]:
    """The mounts in their order; a later one at the same place covers an earlier one."""
    for line in text.splitlines():
        first, _, second = line.partition(" - ")
        words, rest = first.split(" "), [*second.split(" "), "", "", ""]
        if len(words) >= 6:
            yield Mounted(
                _unescape(words[3]),
                _unescape(words[4]),
                frozenset(words[5].split(",")),
                rest[0],
                frozenset(rest[2].split(",")),
            )


def pivot_here() -> None:
    """Make the working folder, which is a mount, the root, and detach the old one."""
    _call(_libc.pivot_root, b".", b".")
    _call(_libc.umount2, b".", _MNT_DETACH)
    os.chdir("/")


def leave_keyring() -> None:
    """Replace the session's keyring by an empty one, where the kernel has keyrings."""
    number = _SYS_KEYCTL.get(os.uname().machine)
    if number is not None:
        with contextlib.suppress(OSError):
            joined = ctypes.c_int(_KEYCTL_JOIN_SESSION_KEYRING)
            _call(_libc.syscall, ctypes.c_long(number), joined, None)


def reset_signal(number: int) -> None:
    """Give a signal its default action, in a process that runs no more handlers of Python.

    `signal.signal` also turns the handler before into an enumeration, which every fork pays for.
    """
    if _libc.signal(ctypes.c_int(number), None) == _SIG_ERR:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def die_with_parent() -> None:
    """Be killed when the parent ends. A change of account resets it."""
    _control(_PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of all orphans among this process's descendants."""
    _control(_PR_SET_CHILD_SUBREAPER, 1)


def forbid_new_privileges() -> None:
    """Let no program that is executed from here on get more privileges than this process."""
    _control(_PR_SET_NO_NEW_PRIVS, 1)


def keep_capabilities(kept: frozenset[int]) -> None:
    """Drop all other capabilities, for good."""
    for number in range(_CAPABILITIES):
        # Called without more ado, because it is called forty times in every fork.
        if number not in kept and _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) < 0:
            fault = ctypes.get_errno()
            # Only root can; others have none that could come back.
            if fault == errno.EPERM:
                continue
            # The kernel knows no such capability, and none after it.
            if fault == errno.EINVAL:
                break
            raise OSError(fault, os.strerror(fault))
    header = _CapabilityHeader(_CAPABILITY_VERSION, 0)
    now = (_CapabilitySet * 2)()
    _call(_libc.capget, ctypes.byref(header), ctypes.byref(now))
    for word in range(2):
        mask = sum(1 << (each - 32 * word) for each in kept if each // 32 == word)
        now[word].permitted &= mask
        now[word].effective = now[word].permitted
        now[word].inheritable = 0
    _control(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    _call(_libc.capset, ctypes.byref(header), ctypes.byref(now))


def _control(option: int, value: int) -> None:
    _call(_libc.prctl, option, value, 0, 0, 0)


def _call(function: Any, *arguments: Any, path: str | None = None) -> int:
    answer = function(*arguments)
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return answer


def _unescape(text: str) -> str:
    for code, plain in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, plain)
    return text
