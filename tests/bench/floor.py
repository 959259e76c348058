"""The floor that a server's figures stand beside: the same framework, and nothing that it decides.

`POST /submit` adds five rows and commits durably. `GET /pages/0` answers with the first page that
it was given: one of the server, as plain lists and dictionaries, which the framework encodes for
every request. It is a process of its own, as a server is, and is asked by the same clients in the
same minute.
"""

from __future__ import annotations

import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROWS = 5
_INSERT = "INSERT INTO floor (a, b, c) VALUES ('a workflow', 'of a user', 'as text')"
_TABLE = "CREATE TABLE IF NOT EXISTS floor (a TEXT, b TEXT, c TEXT)"


@contextmanager
def served(database: str, *pages: Path) -> Iterator[str]:
    """The floor in a process of its own, with a database and files of pages; where it answers."""
    command = [sys.executable, "-m", "tests.bench.floor", database, *map(str, pages)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            _await_answer(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _await_answer(port: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)


def main(database: str, *files: str) -> None:
    import msgspec
    import uvicorn
    from litestar import Litestar, get, post

    keep = _writer(database)
    pages = [msgspec.json.decode(Path(each).read_bytes()) for each in files]

    @post("/submit", sync_to_thread=True, status_code=200)
    def submit(data: dict[str, Any]) -> dict[str, str]:
        keep()
        return {"name": str(len(data))}

    @get("/pages/{number:int}", sync_to_thread=True)
    def page(number: int) -> dict[str, Any]:
        return pages[number]

    # Of TCP by name: otherwise asyncio would let small answers wait for acknowledgements.
    kind = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    with socket.socket(*kind) as listening:
        listening.bind(("127.0.0.1", 0))
        print(listening.getsockname()[1], flush=True)
        app = Litestar([submit, page], openapi_config=None)
        config = uvicorn.Config(app, log_level="warning", access_log=False)
        uvicorn.Server(config).run(sockets=[listening])


def _writer(database: str) -> Callable[[], None]:
    """Adds rows and commits them, with everything switched on that makes that durable."""
    if database.startswith("postgresql"):
        return _postgresql(database)
    return _sqlite(database.removeprefix("sqlite:///"))


def _sqlite(path: str) -> Callable[[], None]:
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(_TABLE)
    lock = threading.Lock()

    def keep() -> None:
        with lock:
            connection.execute("BEGIN IMMEDIATE")
            for _ in range(ROWS):
                connection.execute(_INSERT)
            connection.execute("COMMIT")

    return keep


def _postgresql(url: str) -> Callable[[], None]:
    import psycopg

    with psycopg.connect(url, autocommit=True) as first:
        first.execute(_TABLE)
    own = threading.local()

    def keep() -> None:
        if not hasattr(own, "connection"):
            own.connection = psycopg.connect(url)
        with own.connection.transaction():
            for _ in range(ROWS):
                own.connection.execute(_INSERT)

    return keep


if __name__ == "__main__":
    main(*sys.argv[1:])
