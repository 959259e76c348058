"""The typed Python client of a Bough server: what the command line uses, and other programs may.

    from bough import Client

    client = Client("http://127.0.0.1:8265", token="...")
    client.subpools.create("team", "a", 30)

Answers are the server's JSON as plain dictionaries; errors are those of `bough.errors`. Needs the
standard library alone. Must not know how an answer is shown.
"""

from __future__ import annotations

from bough.client.client import Client
from bough.client.login import Login, find_login, forget_login, store_login

__all__ = ["Client", "Login", "find_login", "forget_login", "store_login"]
