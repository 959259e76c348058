"""Which network tasks get on this machine, tried out in a process of its own, as `python -m`."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys

import msgspec

from bough.backends.local.errors import Unstartable
from bough.backends.local.options import LocalOptions, TaskNetwork
from bough.backends.local.sandbox.network import (
    Namespaces,
    NetworkSetup,
    make_namespaces,
    open_way_out,
    plan_network,
)
from bough.backends.local.task_command import SandboxKind
from bough.errors import BoughError, Invalid

_TIMEOUT_S = 30
_DANGER = (
    "a task can connect to everything that listens on this machine's loopback, and can listen on "
    "an address of this machine that others are about to use"
)
_INSTALL = "install slirp4netns, or share this machine's network by --task-network host"


class NetworkTrial(msgspec.Struct, frozen=True):
    """What does not work, in words; empty: it does."""

    network: str = ""
    way_out: str = ""


def choose_network(
    options: LocalOptions, sandbox: SandboxKind | None
) -> tuple[NetworkSetup | None, tuple[str, ...]]:
    """How groups get networks, or `None` for this machine's; and warnings."""
    wanted = options.network
    if wanted is TaskNetwork.HOST:
        return None, (f"tasks share this machine's network (--task-network host): {_DANGER}",)
    if sandbox is None:
        trial = NetworkTrial("they have no private view of this machine")
    else:
        setup = plan_network(sandbox, wanted)
        trial = try_network(setup)
        if not trial.network:
            return _without(setup, wanted, trial, options)
    if wanted is TaskNetwork.NONE:
        raise Invalid(
            f"Tasks cannot have networks of their own (--task-network none): {trial.network}.",
            hint="say --task-network host to share this machine's network",
        )
    return None, (f"tasks share this machine's network, because {trial.network}: {_DANGER}",)


@functools.cache
def try_network(setup: NetworkSetup) -> NetworkTrial:
    """Make a network as for a group, and say what does not work."""
    try:
        answer = subprocess.run(  # noqa: S603 - this program itself
            (sys.executable, "-m", __name__, msgspec.json.encode(setup).decode()),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)},
        )
    except subprocess.TimeoutExpired:
        return NetworkTrial(f"a trial did not end within {_TIMEOUT_S} seconds")
    except OSError as error:
        return NetworkTrial(f"{sys.executable} cannot be run again: {error.strerror}")
    try:
        return msgspec.json.decode(answer.stdout, type=NetworkTrial)
    except msgspec.DecodeError:
        lines = answer.stderr.decode(errors="replace").strip().splitlines()
        return NetworkTrial(lines[-1] if lines else "a trial was killed")


def _without(
    setup: NetworkSetup, wanted: TaskNetwork, trial: NetworkTrial, options: LocalOptions
) -> tuple[NetworkSetup, tuple[str, ...]]:
    """The setup without what does not work, and what that means."""
    warnings: list[str] = []
    fault = trial.way_out if setup.slirp else "slirp4netns is not installed"
    if wanted is TaskNetwork.OWN and fault:
        setup = msgspec.structs.replace(setup, slirp=None)
        warnings.append(
            f"TASKS CANNOT REACH ANY OTHER MACHINE, only the others of their group: {fault}; "
            f"{_INSTALL}"
        )
    if options.container_runner is not None:
        warnings.append(
            f"tasks that run in their images share this machine's network all the same: {_DANGER}"
        )
    return setup, tuple(warnings)


def main(text: str) -> None:
    """Try it, and say what does not work."""
    setup = msgspec.json.decode(text, type=NetworkSetup)
    network = way_out = ""
    try:
        namespaces = make_namespaces(setup.kind)
        if setup.slirp is not None:
            way_out = _try_way_out(setup, namespaces)
        namespaces.join()
    except OSError as error:
        network = error.strerror or str(error)
    except BoughError as error:
        network = error.message
    sys.stdout.write(msgspec.json.encode(NetworkTrial(network, way_out)).decode())


def _try_way_out(setup: NetworkSetup, namespaces: Namespaces) -> str:
    try:
        opened = open_way_out(setup, namespaces)
    except Unstartable as error:
        return error.message
    try:
        opened.wait()
    except Unstartable as error:
        return error.message
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(opened.pid, signal.SIGKILL)
    return ""


if __name__ == "__main__":
    main(sys.argv[1])
