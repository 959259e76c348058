"""Whether a server is the one that was logged in to, seen before anything secret is sent to it.

The server signs random bytes with its key. This is asked again on every new connection, because a
connection is all that can be relied on: what answers the next one may be another program. A program
that passes the question on to the real server is noticed by the address that the server signs with
it, unless there was something between already at the login, such as a proxy.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from bough.errors import Unavailable

if TYPE_CHECKING:
    from bough.client.addresses import Address
    from bough.client.connection import Connection

_PATH = "/api/server-key?challenge="
_CHALLENGE_BYTES = 32
_SIGNS = "0123456789abcdef"
_KEY_SIGNS = 64
#: The answer in place of a server that does not run, or has too much to do: it proves nothing.
_AWAY = 503


class KnownServer(NamedTuple):
    """What is known of a server since the login."""

    #: Its public key, in hexadecimal digits.
    key: str
    #: Whether it was asked directly, so that nothing may be between.
    direct: bool = False


def is_key(text: str) -> bool:
    """Whether a text can be the key of a server."""
    return len(text) == _KEY_SIGNS and all(each in _SIGNS for each in text)


def ask_for_key(
    connection: Connection, address: Address, headers: Mapping[str, str]
) -> KnownServer | None:
    """The key that what answers can prove to have; `None`: none at all."""
    challenge = os.urandom(_CHALLENGE_BYTES).hex()
    connection.ask("GET", f"{address.base}{_PATH}{challenge}", headers, b"")
    status, content = connection.status, connection.read()
    if status == _AWAY:
        raise Unavailable(
            f"The server at {address.text} does not answer at the moment (503 in its place). "
            "Your token was not sent.",
            hint="try again in a moment; its administrator starts it with `bough serve`",
        )
    if status != 200:
        return None
    # For those who know a key; a login is read without them.
    import msgspec  # noqa: PLC0415

    from bough.api.system import ServerKeyAnswer  # noqa: PLC0415
    from bough.client.ed25519 import verifies  # noqa: PLC0415

    try:
        answer = msgspec.json.decode(content, type=ServerKeyAnswer)
        key, signature = bytes.fromhex(answer.key), bytes.fromhex(answer.signature)
    except (msgspec.MsgspecError, ValueError):
        return None
    if not verifies(key, answer.signed_text(challenge, answer.address), signature):
        return None
    return KnownServer(answer.key, connection.reaches(answer.address))


def check(server: str, known: KnownServer, found: KnownServer | None) -> None:
    """Refuse to go on unless what answers is the server that is known."""
    if found is None:
        fault = "it cannot prove that it is the server that you logged in to"
    elif found.key != known.key:
        fault = f"it is not the server that you logged in to; its key is {found.key}"
    elif known.direct and not found.direct:
        fault = "it passes on what it is asked to the server that you logged in to"
    else:
        return
    raise Unavailable(
        f"Something else answers at {server}: {fault}. It was not sent your token.",
        hint="another program may have taken that address: tell the administrator. If the server "
        "was set up anew or its way changed, compare the key with server-key.pub in its data "
        f"folder and log in again: `bough login {server} --new-server`",
    )
