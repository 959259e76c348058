"""Seals decisions that are written on PodGroups, so that the next leader knows them for its own.

Users may edit their PodGroups. A decision that they wrote themselves would have their pods bound
without quota, on nodes of their choice. The key is in the Secret of the scheduler, which they
cannot read.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from typing import Any

KEY_BYTES = 32
#: The field of the Secret.
KEY_FIELD = "seal"


class DecisionSeal:
    """Makes seals with one key, and checks them."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    @classmethod
    def new(cls) -> DecisionSeal:
        """One with a key that nothing else has."""
        return cls(secrets.token_bytes(KEY_BYTES))

    @classmethod
    def read(cls, secret: dict[str, Any]) -> DecisionSeal | None:
        """The one of the leader before, from its Secret, if that has one."""
        data: dict[str, Any] = secret.get("data") or {}
        try:
            key = base64.b64decode(str(data.get(KEY_FIELD, "")), validate=True)
        except binascii.Error:
            return None
        return cls(key) if len(key) == KEY_BYTES else None

    @property
    def field(self) -> dict[str, str]:
        """What the Secret has to say, for the leaders after this one."""
        return {KEY_FIELD: base64.b64encode(self._key).decode()}

    def of(self, group_uid: str, decision: str) -> str:
        """The seal of a decision about one PodGroup; copied to another one it says nothing."""
        return hmac.new(self._key, f"{group_uid}\n{decision}".encode(), "sha256").hexdigest()

    def is_ours(self, group_uid: str, decision: str, seal: str) -> bool:
        """Whether a scheduler with this key wrote that decision on that PodGroup."""
        return hmac.compare_digest(self.of(group_uid, decision).encode(), seal.encode())
