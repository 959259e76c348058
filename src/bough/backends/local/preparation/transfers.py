"""The inputs, outputs and checkpoints of a task, as mounts and copies.

Whole folders are mounted read-only, if the task has a sandbox; everything else is copied.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from bough.backends.local.data.locations import results_folder, url_folder
from bough.backends.local.data.paths import is_folder, shown
from bough.backends.local.errors import Unstartable
from bough.backends.local.options import LocalOptions
from bough.backends.local.pool_data.pool_folder import space_folder
from bough.backends.local.preparation.accounts import can_read
from bough.backends.local.preparation.layout import Surroundings, TaskLayout
from bough.backends.local.task_command import Copy, Mount, PoolPlace, StorePlace, UserAccount
from bough.model.object_store import (
    find_endpoint,
    is_store_url,
    read_store_credential,
    store_url_fault,
)
from bough.model.pool_data import PoolSpace, data_path_fault, read_data_url
from bough.model.safe_regex import regex_fault
from bough.model.task_template import CheckpointSpec, InputSpec, OutputSpec


class Transfers(msgspec.Struct, frozen=True):
    """Plans the data of one task."""

    options: LocalOptions
    layout: TaskLayout
    workflow_id: str
    #: The identity of the pool.
    pool: str = ""
    #: The account that the task runs as, if it is not the server's.
    account: UserAccount | None = None
    #: The user who submitted it, and the data of pools that it reads and writes for this user.
    user: str = ""
    spaces: dict[str, PoolSpace] = {}
    #: What opens the object stores of its URLs; `None`: they stand for folders of this machine.
    stores: dict[str, dict[str, str]] | None = None
    #: Where copies from and to stores note how far they came.
    progress: str = ""

    def plan_inputs(
        self, inputs: tuple[InputSpec, ...]
    ) -> tuple[tuple[Mount, ...], tuple[Copy, ...]]:
        """The mounts for the inputs, and the copies to make before."""
        mounts: list[Mount] = []
        copies: list[Copy] = []
        for number, each in enumerate(inputs):
            what = f"inputs[{number}]"
            _check_regex(each.regex, what)
            mountable = self.layout.surroundings is not Surroundings.MACHINE
            place = self._pool_place(each.url, what)
            store = self._store_place(each.url, what)
            if place is not None or store is not None:
                folder = self.layout.input(number)
                copy = self._copy(Path(), folder, each.regex, optional=True)
                copies.append(
                    msgspec.structs.replace(
                        copy, source="", from_pool=place, from_store=store, only_read=mountable
                    )
                )
                if mountable:
                    mounts.append(Mount(str(folder), self.layout.seen_input(number)))
                continue
            sources = self._find_input(each, what)
            if mountable and each.regex is None and self._can_mount(sources, each):
                mounts.append(Mount(str(sources[0]), self.layout.seen_input(number)))
                continue
            folder = self.layout.input(number)
            optional = each.task is None
            copies += (self._copy(one, folder, each.regex, optional=optional) for one in sources)
            if mountable:
                mounts.append(Mount(str(folder), self.layout.seen_input(number)))
        return tuple(mounts), tuple(copies)

    def plan_project(self, url: str | None) -> tuple[Copy, ...]:
        """The copy of a folder of a pool's data into the working folder, to be changed there."""
        place = self._pool_place(url, "upload")
        if place is None:
            return ()
        copy = Copy("", str(self.layout.work), from_pool=place, account=self.account)
        return (copy,)

    def plan_outputs(self, outputs: tuple[OutputSpec, ...], task: str) -> tuple[Copy, ...]:
        """The copies to make when the task has completed; the last one moves its results."""
        copies: list[Copy] = []
        for number, each in enumerate(outputs):
            what = f"outputs[{number}]"
            _check_regex(each.regex, what)
            copies.append(self._copy_to(self.layout.output, each.url, what, each.regex))
        results = results_folder(self.options, self.workflow_id, task)
        return (*copies, Copy(str(self.layout.output), str(results), move=True))

    def plan_checkpoints(self, checkpoints: tuple[CheckpointSpec, ...]) -> tuple[Copy, ...]:
        """The copies to make while the task runs.

        A folder keeps its name: `/tmp/models` is found at `<url>/models`, and `/tmp/models/*` at
        the URL itself.
        """
        copies: list[Copy] = []
        for number, each in enumerate(checkpoints):
            what = f"checkpoint[{number}]"
            _check_regex(each.regex, what)
            spot = self.layout.locate(checkpointed(each), what)
            copy = self._copy_to(spot.path, each.url, what, each.regex, optional=True)
            copies.append(
                msgspec.structs.replace(
                    copy, every_s=max(1, each.frequency_s), named=not each.path.endswith("/*")
                )
            )
        return tuple(copies)

    def _can_mount(self, sources: tuple[Path, ...], each: InputSpec) -> bool:
        """Whether it can be shown as it is; a copy can be read by every account.

        Results have the modes that their task gave them, and maybe the account of another one.
        """
        if len(sources) != 1 or not is_folder(sources[0]):
            return False
        is_result = each.task is not None
        return self.account is None or can_read(sources[0], self.account, all_of_it=is_result)

    def _find_input(self, each: InputSpec, what: str) -> tuple[Path, ...]:
        """Where its data is; what comes later counts, where a file is in several places."""
        if each.task is None:
            if each.url is None:
                raise Unstartable(f"{what}: write `task:` or `url:`, for where the data is from")
            own = url_folder(self.options, each.url, what, self.pool)
            # What an earlier version wrote for all pools.
            shared = url_folder(self.options, each.url, what)
            found = [path for path in dict.fromkeys((shared, own)) if os.path.lexists(path)]
            return tuple(found) or (own,)
        workflow_id = each.workflow or self.workflow_id
        folder = results_folder(self.options, workflow_id, each.task)
        if not is_folder(folder):
            raise Unstartable(
                f"{what}: the results of task {shown(each.task)} of workflow {shown(workflow_id)} "
                "are not on this machine; it was not completed here, or they are kept no longer"
            )
        return (folder,)

    def _copy_to(
        self, source: Path, url: str, what: str, regex: str | None, *, optional: bool = False
    ) -> Copy:
        """A copy to what a URL names."""
        place = self._pool_place(url, what)
        store = self._store_place(url, what)
        if place is None and store is None:
            target = url_folder(self.options, url, what, self.pool)
            return self._copy(source, target, regex, optional=optional)
        copy = self._copy(source, Path(), regex, optional=optional)
        return msgspec.structs.replace(copy, target="", to_pool=place, to_store=store)

    def _pool_place(self, url: str | None, what: str) -> PoolPlace | None:
        """The place in the data of a pool that a URL names; `None`: it names something else."""
        found = None if url is None else read_data_url(url)
        if found is None:
            return None
        fault = data_path_fault(found.path) if found.path else None
        if fault is not None:
            raise Unstartable(f"{what}: {shown(str(found))} is not possible: {fault}")
        space = self.spaces.get(found.pool)
        if space is None:
            raise Unstartable(f"{what}: {shown(str(found))} names a pool that it may not use")
        folder = str(space_folder(self.options, space))
        return PoolPlace(folder, found.path, space.quota_bytes, found.pool, self.user)

    def _store_place(self, url: str | None, what: str) -> StorePlace | None:
        """The place in an object store that a URL names; `None`: it names something else."""
        if url is None or self.stores is None or not is_store_url(url):
            return None
        fault = store_url_fault(url)
        if fault is not None:
            raise Unstartable(f"{what}: {shown(url)} is not possible: {fault}")
        endpoint = find_endpoint(url, self.stores)
        credential = None if endpoint is None else read_store_credential(self.stores[endpoint])
        if credential is None or isinstance(credential, str):
            raise Unstartable(f"{what}: there is no credential that opens {shown(url)}")
        return StorePlace(url, credential, self.progress)

    def _copy(
        self, source: Path, target: Path, regex: str | None, *, optional: bool = False
    ) -> Copy:
        return Copy(str(source), str(target), regex, optional=optional)


def checkpointed(checkpoint: CheckpointSpec) -> str:
    """The path of a checkpoint's folder or file."""
    return checkpoint.path.removesuffix("/*")


def _check_regex(regex: str | None, what: str) -> None:
    fault = None if regex is None else regex_fault(regex)
    if fault is not None:
        raise Unstartable(f"{what}.regex: {fault}")
