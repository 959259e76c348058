"""A small world of networks, and real tasks in it: `python -m tests.local.networking KIND FOLDER`.

The process makes a network namespace that stands for this machine, with something that listens on
all of its addresses, and another one that stands for a machine elsewhere. Then it becomes the user
that this kind of sandbox is for, runs tasks with a local backend, and writes what they found as
JSON. Nothing of it touches the networks of the real machine.
"""

from __future__ import annotations

import ctypes
import encodings.idna
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from bough.backends.local.sandbox import netlink, sandbox, sandbox_probe, syscalls
from bough.backends.local.supervisor.group_network import GroupAddress
from bough.backends.local.task_command import SandboxKind
from bough.errors import Unavailable
from bough.model.backend import Launch, Start
from bough.model.task_template import FileSpec
from tests.local.bench import Bench, processes_of, until

NOBODY = 65_534
PYTHON = "/usr/bin/python3"
HERE, ELSEWHERE, OUTSIDE_PORT = "198.51.100.1", "198.51.100.2", 7_000
ABSTRACT = "\0bough-networking"
_PR_SET_DUMPABLE = 4

#: Says what it finds at each address; it waits for the one that must answer.
PROBE = """
import json, socket, sys
def read(family, address):
    with socket.socket(family) as line:
        line.settimeout(5)
        try:
            line.connect(address)
            return line.recv(100).decode()
        except OSError:
            return "nothing"
found = {}
for name, host, port in json.loads(sys.argv[1]):
    found[name] = read(socket.AF_INET, (host, port))
    while name == sys.argv[2] and found[name] == "nothing":
        found[name] = read(socket.AF_INET, (host, port))
found["abstract"] = read(socket.AF_UNIX, "\\0bough-networking")
found["resolver"] = open("/etc/resolv.conf").read().split()[-1]
print(json.dumps(found), flush=True)
"""
#: Listens on the port that the server has, and says who it is.
LISTEN = """
import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener:
    print("listens", flush=True)
    while True:
        with listener.accept()[0] as line:
            line.sendall(b"peer")
"""


def answer(listener: socket.socket, text: bytes) -> None:
    """Say something to all who connect."""

    def run() -> None:
        while True:
            try:
                with listener.accept()[0] as line:
                    line.sendall(text)
            except OSError:
                return

    threading.Thread(target=run, daemon=True).start()


def make_machines() -> int:
    """Be on a machine of its own, beside another one; the process that is there."""
    syscalls.unshare(syscalls.CLONE_NEWNET | syscalls.CLONE_NEWNS)
    syscalls.mount("none", "/", "", syscalls.MS_REC | syscalls.MS_PRIVATE)
    netlink.raise_loopback()
    (told, tell), (ends, lives) = os.pipe(), os.pipe()
    elsewhere = os.fork()
    if elsewhere == 0:
        os.close(lives)
        syscalls.unshare(syscalls.CLONE_NEWNET)
        os.write(tell, b"+")
        while True:
            try:
                listener = socket.create_server((ELSEWHERE, OUTSIDE_PORT))
                break
            except OSError:
                time.sleep(0.01)
        answer(listener, b"elsewhere")
        # Until the other process is gone; it is of another user by then, and cannot end this one.
        os.read(ends, 1)
        os._exit(0)
    os.read(told, 1)
    # Not from /root or the like, and with the device that slirp4netns needs, as usual machines.
    for command in (
        f"ip link add here type veth peer name there netns {elsewhere}",
        f"ip address add {HERE}/24 dev here",
        "ip link set here up",
        f"nsenter -t {elsewhere} -n ip address add {ELSEWHERE}/24 dev there",
        f"nsenter -t {elsewhere} -n ip link set there up",
        "mount -t tmpfs none /dev/net",
        "mknod -m 666 /dev/net/tun c 10 200",
    ):
        subprocess.run(command.split(), check=True)
    return elsewhere


def become(user: int, folder: Path) -> None:
    """Become a plain user, who owns the folder."""
    os.chown(folder, user, user)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    # A process that has changed its user does not own its own files in /proc; a new one does.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    os.environ["HOME"] = str(folder)
    sys.executable = next(filter(_can_run, (sys.executable, PYTHON)))


def _can_run(program: str) -> bool:
    """Whether this user can run this version of Python by a path."""
    asked = "import sys; print(*sys.version_info[:2])"
    try:
        told = subprocess.run([program, "-I", "-c", asked], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return told.stdout.split() == [b"%d" % each for each in sys.version_info[:2]]


class World:
    """The tasks of a few groups, and what they find."""

    def __init__(self, folder: Path) -> None:
        self.server = socket.create_server(("0.0.0.0", 0))  # noqa: S104 - in a world of its own
        self.port = self.server.getsockname()[1]
        answer(self.server, b"the server")
        abstract = socket.socket(socket.AF_UNIX)
        abstract.bind(ABSTRACT)
        abstract.listen()
        answer(abstract, b"a service")
        self.bench = Bench(folder, private=True)

    def start(self, group: str, *launches: Launch) -> None:
        self.bench.backend.start(Start("flow-1", group, launches))

    def listener(self) -> Launch:
        files = (FileSpec("listen.py", LISTEN),)
        return self.bench.launch(PYTHON, "listen.py", str(self.port), name="listener", files=files)

    def prober(self, wait_for: str = "") -> Launch:
        addresses = (
            ("peer", "{{host:listener}}", self.port),
            ("gateway", "10.0.2.2", self.port),
            ("here", HERE, self.port),
            ("elsewhere", ELSEWHERE, OUTSIDE_PORT),
        )
        files = (FileSpec("probe.py", PROBE),)
        return self.bench.launch(PYTHON, "probe.py", json.dumps(addresses), wait_for, files=files)

    def found(self, attempt: str) -> Any:
        """What a prober found."""
        over = self.bench.wait_over(attempt)
        texts = self.bench.texts(attempt)
        assert texts, over
        return json.loads(texts[-1])

    def probe(self, group: str) -> Any:
        launch = self.prober()
        self.start(group, launch)
        return self.found(launch.attempt)

    def connect(self, group: str) -> str:
        """What the server finds in the network of a group."""
        try:
            with self.bench.backend.connect(GroupAddress("flow-1", group, self.port)) as line:
                return line.recv(100).decode()
        except Unavailable as error:
            return error.message


def slirps() -> list[int]:
    """The ways out that were made here."""
    found: list[int] = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            same = os.readlink(each.parent / "ns" / "net") == os.readlink("/proc/self/ns/net")
            if same and b"slirp4netns" in each.read_bytes():
                found.append(int(each.parent.name))
        except OSError:
            continue
    return found


def tell(world: World) -> dict[str, Any]:
    """Run the tasks, and say what they found."""
    told: dict[str, Any] = {"warnings": world.bench.backend.warnings}
    listener, prober = world.listener(), world.prober("peer")
    world.start("one", listener, prober)
    told["together"] = world.found(prober.attempt)
    until(lambda: world.bench.texts(listener.attempt))
    told["later"] = world.probe("one")
    told["other group"] = world.probe("two")
    told["server"] = world.connect("one")
    told["server, other group"] = world.connect("two")
    world.bench.restart()
    told["after a restart"] = world.probe("one")
    told["server, after a restart"] = world.connect("one")
    for each in slirps():
        os.kill(each, signal.SIGKILL)
    until(slirps)
    until(lambda: world.probe("one")["elsewhere"] == "elsewhere")
    world.server.shutdown(socket.SHUT_RDWR)
    with socket.socket() as line:
        told["the server's port"] = line.connect_ex(("127.0.0.1", world.port))
    network = os.readlink(f"/proc/{processes_of(listener.attempt)[-1]}/ns/net")
    told["own network"] = network != os.readlink("/proc/self/ns/net")
    records = world.bench.options.folder / "networks"
    # The networks of the probes that ended go a moment after their tasks.
    until(lambda: len(list(records.glob("*/*"))) == 1)
    (record,) = records.glob("*/*")
    os.kill(int(record.name), signal.SIGKILL)
    world.bench.wait_over(listener.attempt)
    until(lambda: not slirps())
    told["left"] = [each for each in Path("/proc").glob("[0-9]*/ns/net") if _leads(each, network)]
    world.bench.restart()
    told["records"] = list(map(str, world.bench.options.folder.glob("networks/*")))
    return told


def _leads(path: Path, target: str) -> bool:
    try:
        return os.readlink(path) == target
    except OSError:
        return False


#: Imported while this process can read everything.
_NEEDED_LATER = (sandbox_probe, encodings.idna)


def main(kind: str, folder: Path) -> None:
    make_machines()
    if kind != SandboxKind.NAMESPACES:
        become(NOBODY, folder)
        sandbox._WITHOUT_ROOT = (SandboxKind(kind),)
    world = World(folder)
    try:
        told = tell(world)
    finally:
        world.bench.end()
    sys.stdout.write(json.dumps(told, default=str) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
