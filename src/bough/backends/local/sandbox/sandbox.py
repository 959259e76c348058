"""A task's sandbox, its private view of the machine: which kind works here, and how to enter it.

A process that enters a sandbox gets a process namespace. There are three processes in a row: the
one that entered stays outside and ends as the task ends; the second one is the init process of the
namespace and passes signals on; the third one becomes the task, in a session of its own. When the
task ends or the outer process is killed, the kernel kills everything that the task has started.
Root does without the outer one: its processes are forked into the namespace at once (`fork_first`),
and say through a pipe how the task ended. What the task sees is mounted before that, by the process
that forks, which has done the same for earlier tasks and needs little time for it. A task that
starts alone is no fork of the init process either (`lead_namespace`): that would copy its memory
for a program that needs none of it.
"""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Callable
from typing import NoReturn

from bough.backends.local.errors import Unstartable
from bough.backends.local.options import LocalOptions
from bough.backends.local.sandbox import syscalls
from bough.backends.local.sandbox.bubblewrap import outer_environment, wrap
from bough.backends.local.sandbox.executing import spawn
from bough.backends.local.sandbox.init_process import hold_signals, release_signals, watch
from bough.backends.local.sandbox.network import Namespaces
from bough.backends.local.sandbox.root_filesystem import lay_out, move_in
from bough.backends.local.task_command import Sandbox, SandboxKind, TaskCommand, UserAccount

#: What a task that runs as root keeps: CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID
#: and NET_BIND_SERVICE.
_KEPT = frozenset({0, 1, 3, 4, 5, 6, 7, 10})
_STATUS_BYTES = 4
_REMEDY = "run the server as root, or install bubblewrap"
_REMEDY_OF_ROOT = "let the server make namespaces (it is root, but without CAP_SYS_ADMIN)"
_WITHOUT_ROOT = (SandboxKind.USER_NAMESPACES, SandboxKind.BUBBLEWRAP)


def choose_sandbox(options: LocalOptions) -> tuple[SandboxKind | None, tuple[str, ...]]:
    """The kind of sandbox that works on this machine, or `None` and a warning."""
    if not options.private:
        return None, ()
    # Imported here, because it runs this module in a process of its own.
    from bough.backends.local.sandbox.sandbox_probe import try_sandbox  # noqa: PLC0415

    kinds = (SandboxKind.NAMESPACES,) if os.geteuid() == 0 else _WITHOUT_ROOT
    faults: list[str] = []
    for kind in kinds:
        fault = try_sandbox(kind)
        if fault is None:
            return kind, ()
        faults.append(f"{kind}: {fault}")
    remedy = _REMEDY_OF_ROOT if os.geteuid() == 0 else _REMEDY
    warning = (
        "tasks have no private view of this machine: they share its /tmp, see what this server's "
        "user sees, its data too, and files in their specs cannot have absolute paths; "
        f"{remedy} ({'; '.join(faults)})"
    )
    return None, (warning,)


def enters_images(kind: SandboxKind | None) -> bool:
    """Whether a kind of sandbox can have the files of an image in place of the machine's.

    Bubblewrap cannot: inside, it needs a program that resets signals, which few images have.
    """
    return kind in (SandboxKind.NAMESPACES, SandboxKind.USER_NAMESPACES)


def begins_namespace(command: TaskCommand) -> bool:
    """Whether the process of a task has to be forked by `fork_first`."""
    return command.sandbox is not None and command.sandbox.kind is SandboxKind.NAMESPACES


def fork_first(command: TaskCommand) -> int:
    """Fork a process that is the first one of a new process namespace, as root with one thread."""
    sandbox = command.sandbox
    kinds = {"pid": syscalls.CLONE_NEWPID}
    if sandbox is not None and _is_laid_out_before(sandbox):
        kinds["mnt"] = syscalls.CLONE_NEWNS
    before = {
        kind: os.open(f"/proc/self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)
        for name, kind in kinds.items()
    }
    root = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    pid = -1
    try:
        syscalls.unshare(sum(kinds.values()))
        if sandbox is not None and "mnt" in kinds:
            lay_out(sandbox)
        pid = os.fork()
    except OSError as error:
        raise _unmakeable(error) from error
    finally:
        if pid:
            # This process and its other children are not for these namespaces.
            _return(before, root)
    return pid


def _return(before: dict[int, int], root: int) -> None:
    """Return to the namespaces and the root that this process had."""
    try:
        for kind, descriptor in before.items():
            syscalls.set_namespace(descriptor, kind)
        if syscalls.CLONE_NEWNS in before:
            # A process that enters a mount namespace is at its root, and may have had another one.
            os.fchdir(root)
            os.chroot(".")
    except OSError as error:
        # Nothing that this process does from here on would be right: it is no fault of a task.
        raise RuntimeError(f"namespaces cannot be returned to: {error.strerror}") from error
    for descriptor in (*before.values(), root):
        os.close(descriptor)


def read_status(descriptor: int) -> int | None:
    """The wait status of the task, from the pipe of `enter`; `None`: it was not told."""
    told = os.read(descriptor, _STATUS_BYTES)
    return int.from_bytes(told, "little") if len(told) == _STATUS_BYTES else None


def enter(
    command: TaskCommand, network: Namespaces | None = None, status: int | None = None
) -> tuple[str, ...]:
    """Enter the sandbox of a task; the arguments to execute, with the variables `environment_of`.

    Called in a forked process with one thread. It can return in another process that it forked;
    the one that called it then stays, and ends as the task does. One that `fork_first` forked
    writes how the task ended to the pipe `status`.
    """
    try:
        return _enter(command, network, status)
    except OSError as error:
        raise _unmakeable(error) from error


def lead_namespace(
    command: TaskCommand, network: Namespaces | None, status: int, wait: Callable[[], None]
) -> NoReturn:
    """Be the init process of a namespace that `fork_first` made, and start the task in it.

    `wait` returns when the task may start. All files are closed as soon as its program runs.
    """
    try:
        syscalls.leave_keyring()
        if command.sandbox is not None:
            _isolate(command.sandbox, network, status)
        syscalls.keep_capabilities(_KEPT)
        if command.account is not None:
            os.setgroups(command.account.groups)
            os.setresgid(command.account.group_id, -1, -1)
            os.setresuid(command.account.user_id, -1, -1)
        syscalls.forbid_new_privileges()
        _go_to(command.working_folder)
    except OSError as error:
        raise _unmakeable(error) from error
    wait()
    task = spawn(command.argv, command.environment)
    # The task may not even signal this process, which heeds no signal from within the namespace.
    os.setresuid(0, 0, 0)
    _close_all_but(status)
    watch(task, _tell)
    os._exit(0)


def _go_to(folder: str) -> None:
    """Change to a folder, if the real user of this process could."""
    os.chdir(folder)
    if not os.access(folder, os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)


def _unmakeable(error: OSError) -> Unstartable:
    where = f" ({error.filename})" if error.filename else ""
    return Unstartable(
        f"the task's own view of the machine cannot be made: {error.strerror}{where}"
    )


def _is_laid_out_before(sandbox: Sandbox) -> bool:
    """Whether it is laid out by the process that forks, which must not wait for other disks."""
    own = os.path.dirname(sandbox.temporary) + "/"
    return not sandbox.image and all(each.source.startswith(own) for each in sandbox.mounts)


def environment_of(command: TaskCommand) -> dict[str, str]:
    """The variables for what `enter` returned: the task's, or those for bubblewrap."""
    sandbox = command.sandbox
    if sandbox is not None and sandbox.kind is SandboxKind.BUBBLEWRAP:
        return outer_environment(command)
    return command.environment


def _enter(command: TaskCommand, network: Namespaces | None, status: int | None) -> tuple[str, ...]:
    sandbox = command.sandbox
    if sandbox is not None:
        # The keyring may hold credentials of the server's user.
        syscalls.leave_keyring()
    if sandbox is not None and sandbox.kind is SandboxKind.BUBBLEWRAP:
        _ignore_signals()
        if network is not None:
            network.join()
        return wrap(command, sandbox)
    if sandbox is not None:
        _fork_inner(_isolate(sandbox, network, status))
    give_up_rights(command)
    os.chdir(command.working_folder)
    return command.argv


def give_up_rights(command: TaskCommand) -> None:
    """Keep only the rights that the processes of a task have, for good."""
    if command.sandbox is not None:
        syscalls.keep_capabilities(_KEPT if os.geteuid() == 0 else frozenset())
    if command.account is not None:
        _switch(command.account)
    if command.sandbox is not None:
        syscalls.forbid_new_privileges()


def _isolate(sandbox: Sandbox, network: Namespaces | None, status: int | None) -> int:
    """Enter new namespaces, and those of its group; returns in their init process.

    The pipe through which it has to say how the task ended.
    """
    if network is not None:
        network.join()
    elif sandbox.kind is SandboxKind.USER_NAMESPACES:
        syscalls.become_own_root()
    writing = _fork_with_mirror() if status is None else status
    if status is not None and _is_laid_out_before(sandbox):
        syscalls.unshare(syscalls.CLONE_NEWIPC)
    else:
        syscalls.unshare(syscalls.CLONE_NEWNS | syscalls.CLONE_NEWIPC)
        lay_out(sandbox)
    move_in(sandbox)
    hold_signals()
    return writing


def _fork_inner(writing: int) -> None:
    """Stay as the init process, and return in a process that becomes the task."""
    task = os.fork()
    if task:
        _close_all_but(writing)
        watch(task, _tell)
        os._exit(0)
    os.close(writing)
    # So that it leads its process group, as it would without a namespace.
    os.setsid()
    release_signals()


def _fork_with_mirror() -> int:
    """Go on in the first process of a new namespace, and stay outside, too; the pipe to there."""
    syscalls.unshare(syscalls.CLONE_NEWPID)
    reading, writing = os.pipe2(os.O_CLOEXEC)
    first = os.fork()
    if first:
        os.close(writing)
        _mirror(first, reading)
    os.close(reading)
    syscalls.die_with_parent()
    return writing


def _mirror(first: int, reading: int) -> NoReturn:
    """Stay outside until the namespace has ended, and end as the task did."""
    _ignore_signals()
    _close_all_but(reading)
    told = read_status(0)
    _, status = os.waitpid(first, 0)
    if told is not None:
        status = told
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number not in {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        os._exit(128 + number)
    os._exit(os.WEXITSTATUS(status))


def _tell(status: int) -> None:
    """Tell the process outside how the task ended."""
    os.write(0, status.to_bytes(_STATUS_BYTES, "little"))


def _ignore_signals() -> None:
    """Ignore signals to the process group, which are meant for the task."""
    for each in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        signal.signal(each, signal.SIG_IGN)


def _close_all_but(descriptor: int) -> None:
    """Close all files but this one, which becomes number 0."""
    os.dup2(descriptor, 0)
    os.closerange(1, os.sysconf("SC_OPEN_MAX"))


def _switch(account: UserAccount) -> None:
    os.setgroups(account.groups)
    os.setresgid(account.group_id, account.group_id, account.group_id)
    os.setresuid(account.user_id, account.user_id, account.user_id)
