"""Which devices a task can use: those that every program needs, and the GPUs that it was given.

Version 1 of control groups has a controller for that; with version 2 it is a small eBPF program
that the kernel runs whenever a process of the group opens a device.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import stat
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from bough.backends.local.sandbox.syscalls import make_system_call
from bough.backends.local.task_command import DeviceRules

#: GPUs, other accelerators, and fast networks between them.
ACCELERATORS = ("accel", "dri", "gdrdrv", "infiniband", "kfd", "nvidia", "vfio")
_DEVICES = Path("/dev")
_DRIVER = Path("/proc/driver/nvidia/gpus")
_DRM = Path("/sys/class/drm")
_GPU = re.compile(r"nvidia([0-9]+)")
_MINOR = re.compile(r"^Device Minor:\s*([0-9]+)", re.MULTILINE)
#: null, zero, full, random, urandom, tty, ptmx, and all pseudo terminals.
_USUAL = ((1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0), (5, 2), (136, None))
_ALLOW, _DENY, _LIST = "devices.allow", "devices.deny", "devices.list"
_ALL = "a *:* rwm"
#: By the kind of processor.
_SYS_BPF = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}
_LOAD, _ATTACH = 5, 8
_DEVICE_PROGRAM, _DEVICE_HOOK, _WITH_OTHERS = 15, 6, 2
_CHARACTER = 2
_ATTRIBUTE_BYTES = 72
_LOG_BYTES = 2**16


def find_gpu_devices() -> dict[int, tuple[Path, ...]]:
    """The devices of each GPU alone, by its index in the order of the bus.

    Devices that all GPUs share, as nvidiactl, are of none of them.
    """
    buses = _buses()
    found: dict[int, list[Path]] = {}
    for entry in _entries(_DEVICES, ("nvidia",)):
        match = _GPU.fullmatch(entry.name)
        if match is not None:
            minor = int(match[1])
            index = next((n for n, (_, each) in enumerate(buses) if each == minor), minor)
            found.setdefault(index, []).append(entry)
    of_bus = {bus: index for index, (bus, _) in enumerate(buses)}
    for entry in _entries(_DEVICES / "dri"):
        bus = os.path.realpath(_DRM / entry.name / "device").rsplit("/", 1)[-1]
        if bus in of_bus:
            found.setdefault(of_bus[bus], []).append(entry)
    return {index: tuple(paths) for index, paths in found.items()}


def plan_devices(gpus: Iterable[int], *, sandboxed: bool) -> tuple[DeviceRules, tuple[str, ...]]:
    """What a task with these GPUs can use, and the devices of other GPUs, which it does not see.

    Without a sandbox it can use everything else that its account can.
    """
    own = frozenset(gpus)
    accelerators = _entries(_DEVICES, ACCELERATORS)
    devices = find_gpu_devices() if accelerators else {}
    others = [path for index, paths in devices.items() if index not in own for path in paths]
    denied = tuple(_numbers(others))
    if not sandboxed:
        return DeviceRules(denied=denied), tuple(map(str, others))
    shown = [each for path in accelerators for each in _below(path) if each not in others]
    return DeviceRules((*_USUAL, *_numbers(shown)), denied, rest=False), tuple(map(str, others))


def apply_rules(group: str, rules: DeviceRules) -> None:
    """Let processes of a control group, of either version, use these devices alone."""
    try:
        with open(f"{group}/{_LIST}") as file:
            now = file.read()
    except FileNotFoundError:
        _attach(group, make_program(rules))
        return
    allowed = [_rule(*each) for each in rules.allowed]
    denied = [_rule(*each) for each in rules.denied]
    # The kernel refuses it for a group with others below it: one that an earlier supervisor made.
    if not rules.rest and _ALL in now:
        _tell(f"{group}/{_DENY}", [b"a"])
    _tell(f"{group}/{_ALLOW}", allowed)
    _tell(f"{group}/{_DENY}", denied)


def _rule(major: int, minor: int | None) -> bytes:
    return b"c %d:%s rwm" % (major, b"*" if minor is None else b"%d" % minor)


def _tell(path: str, lines: list[bytes]) -> None:
    """Write some lines to a file of the kernel, which reads one at a time."""
    if not lines:
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        for each in lines:
            os.write(descriptor, each)
    finally:
        os.close(descriptor)


def make_program(rules: DeviceRules) -> bytes:
    """The eBPF program: it compares the type, major and minor number, and answers 1 or 0."""
    code = [
        _instruction(0x61, 2, 1, 0),  # r2 = access and type
        _instruction(0x54, 2, 0, 0, 0xFFFF),  # r2 = type
        _instruction(0x61, 4, 1, 4),  # r4 = major
        _instruction(0x61, 5, 1, 8),  # r5 = minor
    ]
    # What is denied comes first: it may be one of a range that is allowed.
    for answer, numbers in ((0, rules.denied), (1, rules.allowed)):
        for major, minor in numbers:
            tests = [(2, _CHARACTER), (4, major)]
            tests += [] if minor is None else [(5, minor)]
            for done, (register, value) in enumerate(tests):
                left = len(tests) - done - 1
                # Unequal: on to the next rule, behind the other tests and the answer.
                code.append(_instruction(0x55, register, 0, left + 2, value))
            code += _answer(answer)
    return b"".join((*code, *_answer(int(rules.rest))))


def _answer(value: int) -> list[bytes]:
    return [_instruction(0xB7, 0, 0, 0, value), _instruction(0x95, 0, 0, 0)]


def _instruction(operation: int, target: int, source: int, offset: int, value: int = 0) -> bytes:
    return struct.pack("=BBhi", operation, source << 4 | target, offset, value)


def _attach(group: str, program: bytes) -> None:
    """Load a program, and attach it beside those that others have attached to groups above."""
    code = ctypes.create_string_buffer(program, len(program))
    licence = ctypes.create_string_buffer(b"Apache-2.0")
    log = ctypes.create_string_buffer(_LOG_BYTES)
    addresses = (ctypes.addressof(code), ctypes.addressof(licence))
    loaded = _bpf(
        _LOAD,
        struct.pack(
            "=IIQQIIQ",
            _DEVICE_PROGRAM,
            len(program) // 8,
            *addresses,
            1,
            _LOG_BYTES,
            ctypes.addressof(log),
        ),
    )
    try:
        folder = os.open(group, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _bpf(_ATTACH, struct.pack("=IIII", folder, loaded, _DEVICE_HOOK, _WITH_OTHERS))
        finally:
            os.close(folder)
    finally:
        os.close(loaded)


def _bpf(command: int, attributes: bytes) -> int:
    padded = attributes.ljust(_ATTRIBUTE_BYTES, b"\0")
    content = ctypes.create_string_buffer(padded, len(padded))
    return make_system_call(_SYS_BPF, ctypes.c_int(command), content, ctypes.c_uint(len(padded)))


def _buses() -> list[tuple[str, int]]:
    """The bus address and the minor number of each GPU, in the order of the bus."""
    found: list[tuple[str, int]] = []
    for folder in _entries(_DRIVER):
        with contextlib.suppress(OSError):
            match = _MINOR.search((folder / "information").read_text(errors="replace"))
            if match is not None:
                found.append((folder.name.lower(), int(match[1])))
    return sorted(found)


def _numbers(paths: Iterable[Path]) -> Iterator[tuple[int, int | None]]:
    for path in paths:
        with contextlib.suppress(OSError):
            status = path.stat(follow_symlinks=False)
            if stat.S_ISCHR(status.st_mode):
                yield os.major(status.st_rdev), os.minor(status.st_rdev)


def _below(path: Path) -> Iterator[Path]:
    if path.is_dir() and not path.is_symlink():
        for each in _entries(path):
            yield from _below(each)
    else:
        yield path


def _entries(folder: Path, begin: tuple[str, ...] = ("",)) -> list[Path]:
    """What is in a folder, by name; only names that begin like this, of which there are few."""
    try:
        return [folder / name for name in sorted(os.listdir(folder)) if name.startswith(begin)]
    except OSError:
        return []
