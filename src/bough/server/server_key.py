"""The key by which a server proves that it is the one that people logged in to.

A client sends random bytes before it sends a token; the server signs them, together with the
address at which it was asked. The private key is in a file of the data folder; the public one is
beside it, for people to compare.
"""

from __future__ import annotations

import base64
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bough.api.system import ServerKeyAnswer
from bough.data_folder_names import PRIVATE_FILE, PUBLIC_FILE
from bough.durable_files import write_whole
from bough.errors import Invalid

#: How many random bytes a client sends, as hexadecimal digits.
CHALLENGE_BYTES = range(16, 65)


class ServerKey:
    """Signs what clients send to see that it is this server."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public = private.public_key().public_bytes_raw().hex()

    @classmethod
    def new(cls) -> ServerKey:
        """A key that is nowhere kept."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def of(cls, data: Path) -> ServerKey:
        """The key of a data folder, which is made if there is none."""
        path = data / PRIVATE_FILE
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            content = _make(path)
        except OSError as error:
            raise Invalid(f"{path} cannot be read: {error.strerror}.") from None
        try:
            key = cls(
                Ed25519PrivateKey.from_private_bytes(
                    base64.b64decode(content.strip(), validate=True)
                )
            )
        except ValueError:
            raise Invalid(
                f"{path} is not the key of a server.",
                hint="restore it from a backup; where there is none, remove it, and tell all users "
                "to log in again with --new-server",
            ) from None
        _publish(data / PUBLIC_FILE, f"{key.public}\n")
        return key

    def prove(self, challenge: str, address: str) -> ServerKeyAnswer:
        """Sign what a client sent, and where it was asked."""
        try:
            sent = bytes.fromhex(challenge)
        except ValueError:
            sent = b""
        if len(sent) not in CHALLENGE_BYTES:
            raise Invalid(
                f"challenge must be 16 to 64 random bytes in hexadecimal digits, not {challenge!r}."
            )
        signature = self._private.sign(ServerKeyAnswer.signed_text(sent.hex(), address))
        return ServerKeyAnswer(self.public, address, signature.hex())


def _publish(path: Path, text: str) -> None:
    """Write the public key, unless it is there: others may be reading it."""
    try:
        if path.read_text() == text:
            return
    except (OSError, UnicodeDecodeError):
        pass
    path.write_text(text)


def _make(path: Path) -> bytes:
    """Make a key, whole or not at all; one that appeared meanwhile is used instead."""
    content = base64.b64encode(Ed25519PrivateKey.generate().private_bytes_raw()) + b"\n"
    try:
        # Clients remember it: it must outlive a loss of power.
        write_whole(path, content, replace=False)
    except FileExistsError:
        return path.read_bytes()
    return content
