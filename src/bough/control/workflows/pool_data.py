"""The data of a pool, for users who may read or write it: lists, parts, drafts, removal."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from bough.control.change_recording import audit
from bough.control.people.access import authorise, require_pool, resource_of
from bough.control.pools.pool_data_limits import data_space
from bough.control.site import Site
from bough.control.workflows.output_locations import find_elsewhere, place_of
from bough.errors import Conflict, Invalid, NotFound
from bough.model.access import Action, Actor
from bough.model.backend import TaskFiles
from bough.model.pool_data import (
    ContentPart,
    DataEntry,
    DataFile,
    DataFiles,
    DataUsage,
    PoolDataKeeper,
    PoolDataStore,
    PoolSpace,
    data_path_fault,
)
from bough.model.subpool import Subpool
from bough.store import pools as pool_store

#: The most bytes of a file to read at once.
PART_BYTES = 4 << 20


class PoolFiles:
    """The data of one pool, as one actor may use it."""

    def __init__(
        self,
        site: Site,
        backends: Mapping[str, TaskFiles],
        actor: Actor,
        name: str,
        action: Action = Action.DATA_READ,
    ) -> None:
        with site.store.read() as connection:
            found = require_pool(connection, name)
            pool = require_pool(connection, found.parent) if isinstance(found, Subpool) else found
            identity = pool_store.uuid_of(connection, pool.name)
        authorise(actor, action, resource_of(pool), site.role_names)
        if isinstance(pool, Subpool) or identity is None:
            raise NotFound(f"Pool {name} not found.")
        self._site = site
        self._actor = actor
        self._space = data_space(pool, identity)
        self._store = _store(site, backends, pool.backend, pool.name)

    @property
    def pool(self) -> str:
        """The name of the pool; for a subpool the one above it."""
        return self._space.name

    def files(self, path: str, after: str, limit: int) -> DataFiles:
        """List files at and below a path, after one of them, up to a limit."""
        return self._store.list_files(self._space, _checked(path), after, limit)

    def part(self, path: str, offset: int, sha256: str | None) -> tuple[DataFile, bytes]:
        """Read a part of a file; refused if its content has changed by now."""
        found = self._store.read_part(self._space, _checked(path), offset, PART_BYTES)
        if found is None:
            raise NotFound(f"bough://{self.pool}/{path[:200]} does not exist.")
        if sha256 is not None and sha256 != found[0].sha256:
            raise Conflict(
                f"bough://{self.pool}/{path[:200]} has changed.", hint="start the download again"
            )
        return found

    def usage(self) -> DataUsage:
        """How much data there is, and may be."""
        return self._store.usage(self._space)

    def draft(self, draft: str, entries: Sequence[DataEntry]) -> Mapping[str, int]:
        """Add files to a draft; returns the missing contents."""
        return self._store.draft(self._space, self._own(draft), entries)

    def receive(self, parts: Iterable[ContentPart]) -> Mapping[str, int]:
        """Keep parts of contents."""
        return self._store.receive(self._space, parts)

    def publish(self, draft: str, below: str) -> int:
        """Make the files of a draft visible, all at once."""
        name = self._own(draft)
        count = self._store.publish(self._space, name, _checked(below), self._actor.name)
        self._audit({"path": below, "written": count})
        return count

    def delete(self, path: str) -> int:
        """Remove a file or a folder."""
        count = self._store.delete(self._space, _checked(path))
        if not count:
            raise NotFound(f"bough://{self.pool}/{path[:200]} does not exist.")
        self._audit({"path": path, "deleted": count})
        return count

    def _own(self, draft: str) -> str:
        """The name of a draft, made unique to the user."""
        return f"{hashlib.sha256(self._actor.name.encode()).hexdigest()[:16]}-{draft}"

    def _audit(self, after: dict[str, str | int]) -> None:
        with self._site.store.write() as connection:
            subject = f"data/{self.pool}"
            audit(connection, self._site, self._actor, Action.DATA_WRITE, subject, after=after)


def clean_data(site: Site, backends: Mapping[str, TaskFiles]) -> int:
    """Remove expired data of pools; returns how many files."""
    with site.store.read() as connection:
        pools = pool_store.list_pools(connection)
        found = pool_store.identities(connection, [each.name for each in pools])
    spaces: dict[str, list[PoolSpace]] = {}
    for pool in pools:
        spaces.setdefault(pool.backend, []).append(data_space(pool, found[pool.name]))
    return sum(
        backend.pool_data.clean(spaces.get(name, []))
        for name, backend in backends.items()
        if isinstance(backend, PoolDataKeeper)
    )


def _checked(path: str) -> str:
    fault = data_path_fault(path) if path else None
    if fault is not None:
        raise Invalid(f"The path {path[:200]!r} is not possible: {fault}.")
    return path


def _store(site: Site, backends: Mapping[str, TaskFiles], backend: str, pool: str) -> PoolDataStore:
    elsewhere = find_elsewhere(site, backends, backend)
    if elsewhere is not None:
        raise Conflict(f"The data of pool {pool} is {place_of(elsewhere)}.")
    found = backends.get(backend)
    if not isinstance(found, PoolDataKeeper):
        raise Conflict(f"Backend {backend} of pool {pool} keeps no data of pools.")
    return found.pool_data
