"""The typed Python client of a Bough server, for the command line and other programs.

    from bough import Client

    client = Client("http://127.0.0.1:8265", token="...")
    client.subpools.create("team", "a", 30)

Answers are types of `bough.api`; errors are those of `bough.errors`.

    client           the client, with one attribute for each subject
    pools, nodes, workflows, people, configs  the subjects
    apps             workflow files that a server keeps
    history_export   finished workflows, into a file
    data             the data of pools
    downloads        results of tasks and data of pools, into a folder
    uploads          files of this machine, into the data of a pool
    ignored_files    which files of a folder are not uploaded
    sessions         sessions with tasks that run: asked for, and opened
    exec_session     a command in a task, with the streams or the terminal of this process
    port_forwarding  ports of a task on this machine's loopback
    transport        requests, answers and streams, tried again where that is safe
    addresses        the address of a server, and the proxy for it
    connection       HTTP/1.1 over a socket
    error_answers    an error that a server answered, as one of `bough.errors`
    server_proof     whether a server is the one that was logged in to
    ed25519          checks the signature of that
    login            where `bough login` stores the address and the token
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.client.login import Login, find_known, find_login, forget_login, store_login
from bough.client.server_proof import KnownServer, check, is_key

if TYPE_CHECKING:
    from bough.client.client import Client

__all__ = [
    "Client",
    "KnownServer",
    "Login",
    "check",
    "find_known",
    "find_login",
    "forget_login",
    "is_key",
    "store_login",
]


def __getattr__(name: str) -> object:
    if name != "Client":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from bough.client.client import Client  # noqa: PLC0415  a login is read without it

    return Client
