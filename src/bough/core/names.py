"""Which names are allowed: those of Kubernetes."""

from __future__ import annotations

import re

MAXIMUM_NAME = 253
MAXIMUM_LABEL = 63

_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*\Z")
_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?\Z")
_QUALIFIED = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?\Z")


def name_fault(name: str) -> str | None:
    """What is wrong with the name of an object (an RFC 1123 subdomain); `None` if nothing is."""
    if len(name) > MAXIMUM_NAME:
        return f"{shorten(name)} has {len(name):,} characters; at most {MAXIMUM_NAME} are allowed"
    if not _SUBDOMAIN.match(name):
        return (
            f"{shorten(name)} is not a valid name: lower case letters, digits, '-' and '.' are "
            "allowed, with a letter or digit at both ends of every part"
        )
    return None


def label_fault(name: str) -> str | None:
    """What is wrong with a short name (an RFC 1123 label); `None` if nothing is."""
    if len(name) > MAXIMUM_LABEL:
        return f"{shorten(name)} has {len(name):,} characters; at most {MAXIMUM_LABEL} are allowed"
    if not _LABEL.match(name):
        return (
            f"{shorten(name)} is not a valid name: lower case letters, digits and '-' are allowed, "
            "with a letter or digit at both ends"
        )
    return None


def resource_fault(name: str) -> str | None:
    """What is wrong with the name of a resource (`cpu`, `nvidia.com/gpu`); `None` if nothing is."""
    prefix, slash, short = name.rpartition("/")
    if slash and name_fault(prefix) is not None:
        return f"{shorten(name)} is not a valid resource: {shorten(prefix)} is not a domain name"
    if len(short) > MAXIMUM_LABEL or not _QUALIFIED.match(short):
        return f"{shorten(name)} is not a valid resource; write it like cpu or nvidia.com/gpu"
    return None


def shorten(name: str) -> str:
    """Quote a name for a message, however long it is."""
    return repr(name if len(name) <= 60 else name[:60] + "…")
