"""Virtual backends that misbehave, for tests of what control does about it."""

from __future__ import annotations

from bough.backends.virtual import VirtualBackend
from bough.control.scheduling.loop import Scheduler
from bough.model.backend import Observation, Sight, Start, Stop


class Grudging(VirtualBackend):
    """Tasks that are told to end go on until they are let go; what was told is kept."""

    def __init__(self, *args, **fields) -> None:
        super().__init__(*args, **fields)
        self.starts: list[Start] = []
        self.stops: list[Stop] = []
        self._seen: dict[str, Observation] = {}

    def start(self, start: Start) -> None:
        self.starts.append(start)
        super().start(start)

    def stop(self, stop: Stop) -> None:
        self.stops.append(stop)
        unknown = tuple(each for each in stop.attempts if each not in self._attempts)
        super().stop(Stop(unknown, stop.reason))

    def let_go(self, *attempts: str) -> None:
        """Let these end that were told to, or all."""
        told = {each for stop in self.stops for each in stop.attempts}
        ended = attempts or tuple(sorted(told & set(self._attempts)))
        for attempt in ended:
            seen = self._seen.get(attempt)
            if seen is not None and seen.sight is Sight.STUCK:
                del self._seen[attempt]
        super().stop(Stop(ended, ""))

    def show(self, attempt: str, sight: Sight, exit_code: int | None = None, **fields) -> None:
        """Report another state of an attempt than a virtual backend would."""
        at_ms = self._now_ms()
        self._seen[attempt] = Observation(attempt, sight, at_ms, exit_code, **fields)

    def observe(self) -> tuple[Observation, ...]:
        seen = {each.attempt: each for each in super().observe()}
        return tuple({**seen, **self._seen}.values())

    def forget(self, attempts: tuple[str, ...]) -> None:
        super().forget(attempts)
        for attempt in attempts:
            self._seen.pop(attempt, None)


def grudging(world) -> Grudging:
    """The world with another backend, that of the nodes it has."""
    world.scheduler.release()
    world.backend = Grudging(world.backend.nodes(), world.time.now_ms)
    world.scheduler = Scheduler(world.site, (world.backend,))
    world.settle()
    return world.backend
