"""One attempt as its files show it; kills what is left of it if its supervisor died."""

from __future__ import annotations

import subprocess

import msgspec

from bough.backends.local.attempt_folder import AttemptFolder
from bough.backends.local.attempt_state import AttemptEnd, AttemptState, look, write_state
from bough.backends.local.order_lease import since_boot_ms
from bough.backends.local.sandbox.limits import Cgroup
from bough.backends.local.supervisor.processes import kill_all, left_of
from bough.model.backend import Observation, Sight

_RESTARTED = "The machine was restarted while it was there."
_GONE = "The supervisor of the task on this machine is gone, and the task was ended."
_UNSTARTED = "It was told to end before it was started."
_DELETED = "Its folder is gone."


class AttemptView(msgspec.Struct):
    """An attempt whose end the server has not yet recorded."""

    folder: AttemptFolder
    state: AttemptState
    #: Whether a supervisor had it when it was read last.
    held: bool = False
    #: When a supervisor was requested, by the monotonic clock, and for which attempts together.
    asked_at: float | None = None
    together: tuple[str, ...] = ()
    #: Why none was requested yet, in words.
    waits: str = ""
    #: Removes its container.
    cleaner: subprocess.Popen[bytes] | None = None
    #: Moments of CLOCK_BOOTTIME as they were first told by the server's clock.
    told_ms: dict[int, int] = {}
    #: What was last told of it, and from what.
    told: tuple[AttemptState, str, Observation] | None = None

    @property
    def attempt(self) -> str:
        """Its identity."""
        return self.state.accepted.attempt

    @property
    def unstarted(self) -> bool:
        """Whether it must still be started, and no supervisor has it."""
        state = self.state
        return not (self.held or state.begun or state.stop_request or state.end)

    def look(self, boot: str, now_ms: int) -> None:
        """Read its files again, and kill what is left of it if its supervisor died."""
        if self.state.end is not None:
            return
        state, self.held = look(self.folder.state)
        if state is None:
            if self._end_left():
                end = AttemptEnd(Sight.LOST.value, now_ms, message=_DELETED)
                self.state = msgspec.structs.replace(self.state, end=end)
            return
        self.state = state
        if state.end is None and not self.held:
            end = self._judge(state, boot, now_ms)
            if end is not None:
                write_state(self.folder.state, end)
                self.state = msgspec.structs.replace(state, end=end)

    def observation(self, boot: str, now_ms: int) -> Observation:
        """What `observe` reports of it, by the server's clock, of this run of the machine.

        Asked for again and again, of all attempts, while few of them change.
        """
        if self.told is None or self.told[0] is not self.state or self.told[1] != self.waits:
            self.told = (self.state, self.waits, self._observation(boot, now_ms))
        return self.told[2]

    def _observation(self, boot: str, now_ms: int) -> Observation:
        end, begun = self.state.end, self.state.begun
        if end is not None:
            return Observation(
                self.attempt,
                Sight(end.sight),
                self._server_ms(end.at_ms, end.boot_ms, boot, now_ms),
                end.exit_code,
                end.message,
                end.signal,
                end.told,
            )
        if begun is not None and begun.started_ms is not None:
            at_ms = self._server_ms(begun.started_ms, begun.started_boot_ms, boot, now_ms)
            return Observation(self.attempt, Sight.RUNNING, at_ms)
        since = self.state.accepted.accepted_ms
        return Observation(self.attempt, Sight.STARTING, since, message=self.waits)

    def _server_ms(self, at_ms: int, boot_ms: int | None, boot: str, now_ms: int) -> int:
        """When something was by the server's clock: the supervisor's may have been set since."""
        if boot_ms is None or self.state.accepted.boot != boot:
            return at_ms
        return self.told_ms.setdefault(boot_ms, now_ms - (since_boot_ms() - boot_ms))

    def _judge(self, state: AttemptState, boot: str, now_ms: int) -> AttemptEnd | None:
        """How an attempt without a supervisor ended; `None`: it has not, or not yet."""
        if state.accepted.boot != boot:
            return AttemptEnd(Sight.LOST.value, now_ms, message=_RESTARTED)
        if state.begun is not None:
            end = AttemptEnd(Sight.LOST.value, now_ms, message=_GONE)
            return end if self._end_left() and self._clean() else None
        if state.stop_request is not None:
            end = AttemptEnd(Sight.ENDED.value, now_ms, message=_UNSTARTED)
            return end if self._clear() else None
        return None

    def _end_left(self) -> bool:
        """Kill its processes; true once none was left."""
        begun = self.state.begun
        pid, since = (0, 0) if begun is None else (begun.pid, begun.pid_since)
        left = left_of(self.attempt, pid, since)
        kill_all(left)
        return not left and self._clear()

    def _clean(self) -> bool:
        """Run the command that removes its container; whether that is done."""
        if self.cleaner is None:
            try:
                argv = msgspec.json.decode(self.folder.cleaning.read_bytes(), type=tuple[str, ...])
                self.cleaner = subprocess.Popen(  # noqa: S603 - made by this backend
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            except (OSError, msgspec.DecodeError):
                # There is no such command.
                return True
        return self.cleaner.poll() is not None

    def _clear(self) -> bool:
        """Kill what is in its control group, and remove the group; whether that is done."""
        try:
            group = msgspec.json.decode(self.folder.group.read_bytes(), type=Cgroup)
        except (OSError, msgspec.DecodeError):
            return True
        return group.kill() and group.remove()
