"""A network namespace for each group of tasks, with a way out by slirp4netns where that works.

The tasks of a group reach each other on the loopback of their namespace, and other machines through
slirp4netns. They reach no address of this machine: not its loopback, nor its other addresses, nor
abstract Unix sockets. Nothing of a namespace is left when the processes that hold it are gone:
slirp4netns ends when the last end of a pipe is closed.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import select
import socket
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from bough.backends.local.errors import Unstartable
from bough.backends.local.options import TaskNetwork
from bough.backends.local.sandbox import netlink, syscalls
from bough.backends.local.sandbox.executing import find_program
from bough.backends.local.task_command import SandboxKind

_SLIRP = "slirp4netns"
_DEVICE = "tap0"
#: How long slirp4netns may take; it takes a few milliseconds.
_READY_S = 20.0
#: Networks of which one has no address of this machine; slirp4netns answers for DNS at number 3.
_NETWORKS = ("10.0.2.0/24", "172.31.251.0/24", "192.168.251.0/24")
_RESOLVER_NUMBER = 3


class NetworkSetup(msgspec.Struct, frozen=True):
    """How groups get networks of their own on this machine."""

    kind: SandboxKind
    #: The program that makes the way out; `None`: there is none.
    slirp: str | None = None
    #: The addresses within the network.
    range: str = _NETWORKS[0]

    @property
    def resolver(self) -> str:
        """The address that answers for DNS in the network."""
        return str(ipaddress.ip_network(self.range)[_RESOLVER_NUMBER])


class Namespaces(NamedTuple):
    """The namespaces of a group, as open descriptors."""

    network: int
    #: The user namespace that it belongs to; `None`: that of the server, which is root.
    user: int | None = None

    @property
    def descriptors(self) -> tuple[int, ...]:
        """All of them."""
        return (self.network,) if self.user is None else (self.network, self.user)

    def join(self) -> None:
        """Let this process, which has one thread, enter them; the descriptors are closed."""
        if self.user is not None:
            syscalls.set_namespace(self.user, syscalls.CLONE_NEWUSER)
        syscalls.set_namespace(self.network, syscalls.CLONE_NEWNET)
        for each in self.descriptors:
            os.close(each)


def plan_network(kind: SandboxKind, network: TaskNetwork) -> NetworkSetup:
    """How it is done here, if it works."""
    slirp = find_program(_SLIRP) if network is TaskNetwork.OWN else None
    own = [ipaddress.ip_address(each) for each in netlink.own_addresses()]
    free = (each for each in _NETWORKS if not any(one in ipaddress.ip_network(each) for one in own))
    return NetworkSetup(kind, slirp, next(free, _NETWORKS[0]))


def make_namespaces(kind: SandboxKind) -> Namespaces:
    """Make the namespaces of a group; called in a process with one thread."""
    forbidden = netlink.own_addresses()
    if kind is SandboxKind.BUBBLEWRAP:
        found = _make_with_bubblewrap()
        try:
            _in_fork(lambda: _arrange(found, forbidden))
        except BaseException:
            for each in found.descriptors:
                os.close(each)
            raise
        return found
    if kind is SandboxKind.NAMESPACES:
        return Namespaces(_make_and_return(forbidden))
    return Namespaces(*_in_fork(lambda: _make_of_user(forbidden)))


class WayOut(NamedTuple):
    """A running slirp4netns."""

    pid: int
    #: A pipe; it ends when the second end and all copies of it are closed.
    pipe: tuple[int, int]
    #: It says here that it is ready.
    ready: int

    def wait(self) -> None:
        """Wait until it can be used."""
        poll = select.poll()
        poll.register(self.ready, select.POLLIN)
        try:
            said = os.read(self.ready, 1) if poll.poll(_READY_S * 1_000) else b""
        finally:
            os.close(self.ready)
        if not said:
            raise Unstartable(f"{_SLIRP} does not give its network a way out of this machine")


def open_way_out(
    setup: NetworkSetup, namespaces: Namespaces, pipe: tuple[int, int] | None = None
) -> WayOut:
    """Start slirp4netns for a network; it goes on for as long as a pipe is held open."""
    import subprocess  # noqa: PLC0415 - see supervisor.fork_server

    ready, tell = os.pipe2(os.O_CLOEXEC)
    end, hold = pipe or os.pipe2(os.O_CLOEXEC)
    network, user = namespaces
    # Its own sandbox needs root in the user namespace, which only that of the machine has here.
    own = ("--enable-sandbox",) if user is None else (f"--userns-path=/proc/self/fd/{user}",)
    try:
        process = subprocess.Popen(  # noqa: S603 - found when the server started
            [
                setup.slirp or _SLIRP,
                "--configure",
                "--mtu=65520",
                f"--cidr={setup.range}",
                "--disable-host-loopback",
                f"--exit-fd={end}",
                f"--ready-fd={tell}",
                "--netns-type=path",
                *own,
                f"/proc/self/fd/{network}",
                _DEVICE,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(end, tell, *namespaces.descriptors),
            env={"PATH": os.defpath},
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        os.close(ready)
        raise Unstartable(f"{_SLIRP} cannot be run: {error.strerror}") from error
    finally:
        os.close(tell)
    # It is waited for as every other child, and not by this object.
    process.returncode = 0
    return WayOut(process.pid, (end, hold), ready)


def _make_and_return(forbidden: tuple[str, ...]) -> int:
    """Enter a new network as root, and leave it again; that saves a process."""
    before = _open_own("net")
    try:
        syscalls.unshare(syscalls.CLONE_NEWNET)
        try:
            netlink.raise_loopback()
            netlink.forbid(forbidden)
            return _open_own("net")
        finally:
            syscalls.set_namespace(before, syscalls.CLONE_NEWNET)
    except OSError as error:
        raise Unstartable(f"its network cannot be made: {error.strerror}") from error
    finally:
        os.close(before)


def _make_of_user(forbidden: tuple[str, ...]) -> list[int]:
    syscalls.become_own_root()
    syscalls.unshare(syscalls.CLONE_NEWNET)
    netlink.raise_loopback()
    netlink.forbid(forbidden)
    return [_open_own("net"), _open_own("user")]


def _open_own(name: str) -> int:
    return os.open(f"/proc/self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)


def _arrange(namespaces: Namespaces, forbidden: tuple[str, ...]) -> list[int]:
    namespaces.join()
    netlink.raise_loopback()
    netlink.forbid(forbidden)
    return []


def _make_with_bubblewrap() -> Namespaces:
    """Namespaces of a process that bubblewrap starts, which may make user namespaces."""
    import subprocess  # noqa: PLC0415 - see supervisor.fork_server

    program = find_program("bwrap")
    if program is None:
        raise Unstartable("bubblewrap is not installed any more")
    told, tell = os.pipe2(os.O_CLOEXEC)
    options = ("--unshare-user", "--unshare-net", "--die-with-parent", "--ro-bind", "/", "/")
    process = subprocess.Popen(  # noqa: S603 - the one that makes sandboxes
        [program, *options, "--info-fd", str(tell), "--", "cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pass_fds=(tell,),
        env={"PATH": os.defpath},
    )
    os.close(tell)
    try:
        with os.fdopen(told, "rb") as file:
            child = msgspec.json.decode(file.read() or b"{}", type=dict[str, int]).get("child-pid")
        if child is None:
            raise Unstartable("bubblewrap cannot make a network namespace")
        # What it passes back shows that it runs, in namespaces that are ready.
        os.write(process.stdin.fileno(), b"+") if process.stdin else None
        os.read(process.stdout.fileno(), 1) if process.stdout else None
        network, user = (
            os.open(f"/proc/{child}/ns/{each}", os.O_RDONLY | os.O_CLOEXEC)
            for each in ("net", "user")
        )
        return Namespaces(network, user)
    finally:
        process.kill()
        process.communicate()


def _in_fork(work: Callable[[], list[int]]) -> list[int]:
    """Do something in a forked process; the descriptors that it sends back."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        _work(work, theirs)
    theirs.close()
    with ours:
        try:
            said, descriptors, _, _ = socket.recv_fds(ours, 1_000, 2)
        finally:
            os.waitpid(pid, 0)
    if not said.startswith(b"+"):
        raise Unstartable(said.decode(errors="replace") or "the process that makes it was killed")
    return descriptors


def _work(work: Callable[[], list[int]], line: socket.socket) -> None:
    try:
        found = work()
        socket.send_fds(line, [b"+"], found)
    except BaseException as error:  # any error is reported to the parent
        reason = getattr(error, "strerror", None) or str(error)
        with contextlib.suppress(OSError):
            line.sendall(f"its network cannot be made: {reason}".encode())
    os._exit(0)
