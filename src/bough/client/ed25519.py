"""Checks signatures of Ed25519 (RFC 8032), in Python alone.

A command checks one signature. Loading a library for that takes ten times as long as checking it,
and would be one more thing that every user has to install. Only public values are handled here, so
timing gives nothing away; keys are made, and used, by the server's library.
"""

from __future__ import annotations

import hashlib

_PRIME = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _PRIME) % _PRIME
_ROOT_OF_MINUS_ONE = pow(2, (_PRIME - 1) // 4, _PRIME)

#: Extended coordinates: X, Y, Z and T, with x = X/Z, y = Y/Z and xy = T/Z.
_Point = tuple[int, int, int, int]
_NEUTRAL: _Point = (0, 1, 1, 0)


def verifies(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether a message was signed by the owner of a public key."""
    if len(key) != 32 or len(signature) != 64:
        return False
    public, commitment = _read_point(key), _read_point(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    if public is None or commitment is None or scalar >= _ORDER:
        return False
    digest = hashlib.sha512(signature[:32] + key + message).digest()
    challenge = int.from_bytes(digest, "little") % _ORDER
    return _equal(_multiply(scalar, _BASE), _add(commitment, _multiply(challenge, public)))


def _read_point(content: bytes) -> _Point | None:
    """A point of the curve; `None`: there is none with this y, or it is written in another way."""
    number = int.from_bytes(content, "little")
    sign, y = number >> 255, number & (2**255 - 1)
    x = _find_x(y, sign) if y < _PRIME else None
    return None if x is None else (x, y, 1, x * y % _PRIME)


def _find_x(y: int, sign: int) -> int | None:
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _PRIME) % _PRIME
    x = pow(square, (_PRIME + 3) // 8, _PRIME)
    if (x * x - square) % _PRIME:
        x = x * _ROOT_OF_MINUS_ONE % _PRIME
    if (x * x - square) % _PRIME or (x == 0 and sign):
        return None
    return _PRIME - x if x & 1 != sign else x


def _add(one: _Point, other: _Point) -> _Point:
    a = (one[1] - one[0]) * (other[1] - other[0]) % _PRIME
    b = (one[1] + one[0]) * (other[1] + other[0]) % _PRIME
    c = 2 * one[3] * other[3] * _D % _PRIME
    d = 2 * one[2] * other[2] % _PRIME
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _PRIME, g * h % _PRIME, f * g % _PRIME, e * h % _PRIME


def _multiply(scalar: int, point: _Point) -> _Point:
    found = _NEUTRAL
    while scalar:
        if scalar & 1:
            found = _add(found, point)
        point = _add(point, point)
        scalar >>= 1
    return found


def _equal(one: _Point, other: _Point) -> bool:
    same_x = (one[0] * other[2] - other[0] * one[2]) % _PRIME == 0
    return same_x and (one[1] * other[2] - other[1] * one[2]) % _PRIME == 0


_BASE_Y = 4 * pow(5, -1, _PRIME) % _PRIME
_BASE_X = _find_x(_BASE_Y, 0) or 0
_BASE: _Point = (_BASE_X, _BASE_Y, 1, _BASE_X * _BASE_Y % _PRIME)
