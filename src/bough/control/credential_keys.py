"""The keys that encrypt credentials and the key of passes: in a file, never in the database.

The file has one key on each line, in base64. The first one encrypts; the others are there while a
rotation is under way, and only decrypt. A ciphertext names its key by an identity, and is bound to
what it is: that of a credential to its user, name and type. Moved to another row it cannot be
decrypted.
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from bough.durable_files import write_whole
from bough.errors import Conflict, Invalid, Unavailable
from bough.model.access import Credential

_KEY_BYTES = 32
_NONCE_BYTES = 12
#: The form of a ciphertext, so that another cipher can follow.
_FORM = "1"
_MODE = 0o600
#: No key file is larger.
_FILE_BYTES = 64 * 1024
_NO_COPY = "without it the credentials cannot be read: restore it from where you keep a copy"


class CredentialKeys:
    """The keys of a file; without a file, keys in memory, for tests."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._keys: tuple[bytes, ...] = () if path else (secrets.token_bytes(_KEY_BYTES),)

    @property
    def current(self) -> str:
        """The identity of the key that encrypts."""
        return _identity(self._keys[0])

    def knows(self, identity: str) -> bool:
        """Whether there is a key of this identity; the file may have changed meanwhile."""
        if identity not in map(_identity, self._keys) and self.path is not None:
            self.load()
        return identity in map(_identity, self._keys)

    def ensure(self, *, needed: bool) -> None:
        """Read the file.

        Make it where there is none, unless the database needs a key that existed.
        """
        if self.path is None:
            return
        if not os.path.lexists(self.path):
            if needed:
                raise Unavailable(
                    f"The key file {self.path} does not exist, and the credentials in the "
                    "database are encrypted with a key.",
                    hint=f"{_NO_COPY}, or from another server on the same database (--key-file)",
                )
            _write(self.path, (secrets.token_bytes(_KEY_BYTES),), new=True)
        self.load()

    def load(self) -> None:
        """Read the file again."""
        if self.path is not None:
            self._keys = _read(self.path)

    def add(self) -> None:
        """Put a new key before the others, on the disk first."""
        keys = (secrets.token_bytes(_KEY_BYTES), *self._keys)
        if self.path is not None:
            _write(self.path, keys)
        self._keys = keys

    def take_in(self, text: str) -> None:
        """Add the keys of another file's text behind those of this one, if they are not there."""
        if self.path is None:
            return
        try:
            more = [base64.b64decode(each, validate=True) for each in text.split()]
        except binascii.Error:
            more = []
        if not more or any(len(each) != _KEY_BYTES for each in more):
            raise Invalid("The key of the backup cannot be read.")
        own = _read(self.path) if os.path.lexists(self.path) else ()
        keys = tuple(dict.fromkeys((*own, *more)))
        if keys != own:
            _write(self.path, keys)
        self._keys = keys

    def drop_older(self) -> None:
        """Keep the key that encrypts, and no other."""
        keys = self._keys[:1]
        if self.path is not None:
            _write(self.path, keys)
        self._keys = keys

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the file against other processes."""
        if self.path is None:
            yield
            return
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Conflict("Another rotation of the key is under way.") from None
            yield
        finally:
            os.close(folder)

    def seal(self, credential: Credential, payload: dict[str, str]) -> str:
        """Encrypt what is secret of a credential."""
        return self._seal(msgspec.json.encode(payload), _row(credential))

    def open(self, credential: Credential, sealed: str) -> dict[str, str]:
        """Decrypt it."""
        whose = f"Credential {credential.name} of {credential.user}"
        plain = self._open(whose, sealed, _row(credential))
        if plain is None:
            raise Unavailable(
                f"{whose} was changed in the database, or belongs to another user or name; "
                "it is not used.",
                hint="set it again",
            )
        return msgspec.json.decode(plain, type=dict[str, str])

    def seal_setting(self, name: str, secret: str) -> str:
        """Encrypt a setting of the site that is secret."""
        return self._seal(secret.encode(), _setting(name))

    def open_setting(self, name: str, what: str, sealed: str) -> str:
        """Decrypt it; `what` it is, for people."""
        plain = self._open(what, sealed, _setting(name))
        if plain is None:
            raise Unavailable(
                f"{what} was changed in the database; it is not used.",
                hint="make a new one: bough admin rotate-key",
            )
        return plain.decode()

    def _seal(self, plain: bytes, bound_to: bytes) -> str:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

        nonce = secrets.token_bytes(_NONCE_BYTES)
        text = AESGCM(self._keys[0]).encrypt(nonce, plain, bound_to)
        return f"{_FORM}:{self.current}:{base64.b64encode(nonce + text).decode()}"

    def _open(self, what: str, sealed: str, bound_to: bytes) -> bytes | None:
        """Decrypt something; `None`: it is not what this server, or another one, encrypted."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

        form, _, rest = sealed.partition(":")
        identity, _, text = rest.partition(":")
        if form != _FORM:
            raise Unavailable(f"{what} is encrypted in a form that this version does not know.")
        if not self.knows(identity):
            raise Unavailable(
                f"{what} is encrypted with the key {identity}, which is not in the key file "
                f"{self.path}.",
                hint="use the same key file (--key-file) on all servers of a database",
            )
        key = next(each for each in self._keys if _identity(each) == identity)
        try:
            both = base64.b64decode(text)
            return AESGCM(key).decrypt(both[:_NONCE_BYTES], both[_NONCE_BYTES:], bound_to)
        except (InvalidTag, ValueError):
            return None


def _row(credential: Credential) -> bytes:
    """What a ciphertext is bound to."""
    return msgspec.json.encode(
        ("credential", credential.user, credential.name, credential.type.value)
    )


def _setting(name: str) -> bytes:
    return msgspec.json.encode(("setting", name))


def _identity(key: bytes) -> str:
    """A name for a key that reveals nothing about it."""
    return hashlib.sha256(b"bough credential key\0" + key).hexdigest()[:16]


def _read(path: Path) -> tuple[bytes, ...]:
    """The keys of a file, if none but its owner can read it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            content = file.read(_FILE_BYTES) if stat.S_ISREG(found.st_mode) else b""
    except FileNotFoundError:
        raise Unavailable(f"The key file {path} does not exist.", hint=_NO_COPY) from None
    except OSError as error:
        raise Invalid(f"The key file {path} cannot be read: {error.strerror}.") from None
    if found.st_mode & 0o077:
        raise Invalid(
            f"The key file {path} can be read or written by others than its owner "
            f"(mode {stat.S_IMODE(found.st_mode):04o}).",
            hint=f"chmod 600 {path}; if others had access, run `bough admin rotate-key` after that",
        )
    if found.st_uid not in {0, os.geteuid()}:
        raise Invalid(f"The key file {path} belongs to another user.")
    return tuple(_key(path, number, each) for number, each in enumerate(content.split(), 1)) or (
        _key(path, 1, b""),
    )


def _key(path: Path, number: int, text: bytes) -> bytes:
    with suppress(binascii.Error, ValueError):
        key = base64.b64decode(text, validate=True)
        if len(key) == _KEY_BYTES:
            return key
    raise Invalid(
        f"The key file {path}: line {number} is not a key of {_KEY_BYTES} bytes in base64.",
        hint=_NO_COPY,
    )


def _write(path: Path, keys: Sequence[bytes], *, new: bool = False) -> None:
    """Write the file, whole and on the disk when this returns; a new one replaces no other."""
    content = b"".join(base64.b64encode(each) + b"\n" for each in keys)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Another server may be making it at this moment; then that one counts.
        with suppress(FileExistsError):
            write_whole(path, content, replace=not new)
    except OSError as error:
        raise Unavailable(f"The key file {path} cannot be written: {error.strerror}.") from None
