"""Clients that call a server, or anything else, as fast as they can.

Bounded in number and in time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from http.client import HTTPConnection
from itertools import count

import msgspec

from tests.bench import crowd

#: All together end after so many calls, or so long.
CALLS = 1_500
SECONDS = 5.0


class Client:
    """One connection, kept open."""

    def __init__(self, address: str, token: str) -> None:
        host, _, port = address.removeprefix("http://").rpartition(":")
        self._connection = HTTPConnection(host, int(port), timeout=60)
        self._headers = {
            "authorization": f"Bearer {token}",
            "content-type": "application/json",
        }
        self._body = msgspec.json.encode({"file": crowd.TEXT})
        self._doors = crowd.doors()

    def submit(self, number: int) -> None:
        """One workflow, to the subpools in turn."""
        door = self._doors[number % len(self._doors)]
        self._ask("POST", f"/api/pool/{door}/workflow", self._body)

    def get(self, path: str) -> dict[str, object]:
        """A page, read."""
        return msgspec.json.decode(self._ask("GET", path))

    def ask(self, method: str, path: str, body: bytes | None, _number: int) -> bytes:
        """The same request, whatever its number."""
        return self._ask(method, path, body)

    def _ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        self._connection.request(method, path, body, self._headers)
        response = self._connection.getresponse()
        answer = response.read()
        assert response.status == 200, answer
        return answer


def reader(address: str, token: str, path: str) -> Callable[[int], object]:
    """A client that asks for one page."""
    return partial(Client(address, token).ask, "GET", path, None)


def at_once(
    clients: int,
    make: Callable[[], Callable[[int], object]],
    *,
    calls: int = CALLS,
    seconds: float = SECONDS,
) -> crowd.Latencies:
    """Let several call as fast as they can, each with what it makes for itself."""
    numbers = count()
    taken: list[float] = []
    barrier = threading.Barrier(clients + 1)

    def work() -> None:
        call = make()
        barrier.wait(60)
        while (number := next(numbers)) < calls and time.perf_counter() < deadline:
            start = time.perf_counter()
            call(number)
            taken.append(time.perf_counter() - start)

    threads = [threading.Thread(target=work) for _ in range(clients)]
    deadline = time.perf_counter() + 60
    for thread in threads:
        thread.start()
    barrier.wait(60)
    start = time.perf_counter()
    deadline = start + seconds
    for thread in threads:
        thread.join()
    return crowd.Latencies(tuple(taken), time.perf_counter() - start)
