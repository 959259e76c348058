"""Where the data of tasks is on this machine: their results, and what URLs name.

Results: when a task has completed, its output folder becomes `results/<workflow>/<task>`, where
later tasks find it.

URLs of object stores stand for folders here only in workflows that an earlier version accepted:
`s3://bucket/path` and every other scheme is `pools/<pool>/<scheme>/<bucket>/<path>` in the folder
of the backend, with pools by their identities. A still earlier version kept
`data/<scheme>/<bucket>/<path>` for all pools: that is read where a pool has nothing of its own in
the same place, and no longer written. All other workflows use the store itself
(`object_store_copying`).
`file:///path` is a path of this machine, only below the folders that an option names; every user
who can submit can read and write there.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from urllib.parse import quote

from bough.backends.local.data.paths import real_path, shown, split_path
from bough.backends.local.errors import Unstartable
from bough.backends.local.options import LocalOptions

RESULTS, POOLS, SHARED = "results", "pools", "data"
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,31})://(.*)\Z", re.DOTALL)
_LONGEST_URL = 2_048
#: Leaves room for the suffix of unfinished files.
_LONGEST_NAME = 200
_PLAIN = " !$&'()+,;=@~"


def results_folder(options: LocalOptions, workflow_id: str, task: str) -> Path:
    """The folder of a completed task's results."""
    return real_path(options.folder) / RESULTS / safe_name(workflow_id) / safe_name(task)


def url_folder(options: LocalOptions, url: str, what: str, pool: str = "") -> Path:
    """The folder for a URL; `what` names the field in messages.

    `pool`: the identity of a pool; empty: the folder of an earlier version, for all of them.
    """
    found = _URL.match(url)
    if found is None or len(url) > _LONGEST_URL:
        raise Unstartable(
            f"{what}: {shown(url)} is not a URL that can be used; write "
            f"<scheme>://<bucket>/<path>, with {_LONGEST_URL} characters at most"
        )
    scheme, rest = found[1].lower(), found[2]
    if scheme == "file":
        return _allowed(options, url, rest, what)
    names = [safe_name(each) for each in rest.split("/") if each]
    if not names:
        raise Unstartable(f"{what}: {shown(url)} names no bucket; write {scheme}://<bucket>/<path>")
    kept = Path(POOLS, safe_name(pool)) if pool else Path(SHARED)
    folder = (options.folder.resolve() / kept / scheme).joinpath(*names)
    if len(os.fsencode(str(folder))) > 3_000:
        raise Unstartable(f"{what}: the path of {shown(url)} is too long")
    return folder


def safe_name(name: str) -> str:
    """A safe file name for any text, different for different texts."""
    if name in {".", ".."}:
        return name.replace(".", "%2E")
    safe = quote(name, safe=_PLAIN, errors="surrogatepass")
    if safe.startswith("."):
        safe = "%2E" + safe[1:]
    if not safe or len(safe) > _LONGEST_NAME:
        digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:32]
        safe = f"{safe[: _LONGEST_NAME - 40]}%{digest}"
    return safe


def _allowed(options: LocalOptions, url: str, rest: str, what: str) -> Path:
    """A path of this machine, if it is in an allowed folder."""
    if not options.data_folders:
        raise Unstartable(
            f"{what}: {shown(url)} names a path of this machine, and no folder is allowed for "
            "that; the administrator can allow some (--data-folder)"
        )
    _, fault = split_path(rest)
    if fault is not None or not rest.startswith("/"):
        raise Unstartable(
            f"{what}: {shown(url)} is not possible: "
            f"{fault or 'after file:// comes an absolute path'}"
        )
    # Circular links are left as they are, and never followed later on.
    path = Path(os.path.realpath(rest))
    allowed = (os.path.realpath(each) for each in options.data_folders)
    if not any(path.is_relative_to(each) for each in allowed):
        raise Unstartable(
            f"{what}: {shown(url)} is in none of the folders that are allowed: "
            + ", ".join(str(each) for each in options.data_folders)
        )
    return path
