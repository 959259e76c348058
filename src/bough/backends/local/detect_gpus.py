"""The GPUs of this machine, as nvidia-smi lists them.

A machine without the program has no GPUs, which is fine; a program that fails, hangs or prints
something unexpected gives a warning.
"""

from __future__ import annotations

import shutil
import subprocess

import msgspec

MEBIBYTE = 2**20
_PROGRAM = "nvidia-smi"
_QUERY = ("--query-gpu=index,uuid,name,memory.total", "--format=csv,noheader")
_TIMEOUT_S = 20
_SHOWN = 200


class Gpu(msgspec.Struct, frozen=True):
    """One GPU."""

    #: Its index in the order of the bus, as in CUDA_VISIBLE_DEVICES.
    index: int
    uuid: str
    name: str
    #: `None`: not known, as where memory is shared with the CPU.
    memory_bytes: int | None = None


def find_gpus(timeout_s: float = _TIMEOUT_S) -> tuple[tuple[Gpu, ...], tuple[str, ...]]:
    """The GPUs, in the order of their indices, and warnings about what went wrong."""
    program = shutil.which(_PROGRAM)
    if program is None:
        return (), ()
    try:
        answer = subprocess.run(  # noqa: S603 - found by its fixed name
            (program, *_QUERY),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return (), (f"{_PROGRAM} did not answer within {timeout_s:g} seconds: no GPUs were found",)
    except OSError as error:
        return (), (f"{_PROGRAM} cannot be run ({error.strerror}): no GPUs were found",)
    text = answer.stdout.decode(errors="replace")
    if answer.returncode != 0:
        said = _shown(answer.stderr.decode(errors="replace").strip() or text.strip())
        return (), (
            f"{_PROGRAM} failed with exit code {answer.returncode}: no GPUs were found ({said})",
        )
    return _read(text)


def _read(text: str) -> tuple[tuple[Gpu, ...], tuple[str, ...]]:
    found: dict[int, Gpu] = {}
    warnings: list[str] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        gpu = _read_line(line)
        if gpu is None:
            warnings.append(f"{_PROGRAM} wrote a line that is not understood: {_shown(line)}")
        elif gpu.index in found:
            warnings.append(f"{_PROGRAM} told GPU {gpu.index} twice; the first one counts")
        else:
            found[gpu.index] = gpu
    return tuple(found[index] for index in sorted(found)), tuple(warnings)


def _read_line(line: str) -> Gpu | None:
    """Read one line; a name may have commas of its own, the other fields have none."""
    parts = [each.strip() for each in line.split(",")]
    if len(parts) < 4 or not (parts[0].isascii() and parts[0].isdigit()):
        return None
    if not parts[1].startswith("GPU-"):
        return None
    return Gpu(int(parts[0]), parts[1], ", ".join(parts[2:-1]), _read_memory(parts[-1]))


def _read_memory(text: str) -> int | None:
    number, _, unit = text.partition(" ")
    if unit == "MiB" and number.isascii() and number.isdigit():
        return int(number) * MEBIBYTE
    return None


def _shown(text: str) -> str:
    """Output of a program for a message, on one line and not too long."""
    plain = "".join(each if each.isprintable() else " " for each in text)
    return plain if len(plain) <= _SHOWN else plain[:_SHOWN] + "…"
