"""The server's data folder: making it, what shows that a site is in it, secrets in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bough.data_folder_names import DATABASE_FILE
from bough.durable_files import write_whole
from bough.errors import Conflict, Invalid
from bough.server.disk_space import give_up_file
from bough.server.settings import TASK_FOLDER_FILE, Settings
from bough.store import Store
from bough.store.migration import current_revision, require_latest


def make_folder(path: Path) -> None:
    """Make the data folder if it does not exist."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Invalid(f"{path} cannot be the data folder: {error.strerror}.") from None


def open_store(settings: Settings) -> Store:
    """Open the database of the site; an empty one is a new site only if nothing is around it."""
    make_folder(settings.data)
    give_up_file(settings.address)
    store = Store.open(settings.address)
    try:
        traces = traces_of_a_site(settings)
        if traces and is_empty(store):
            raise Conflict(
                f"The database is empty, but {settings.data} belongs to a site: it has "
                f"{' and '.join(traces)}.",
                hint="name the right --database, or `bough restore` a backup; "
                "for a new site, name another --data folder",
            )
    except BaseException:
        store.close()
        raise
    return store


def settle_task_folder(settings: Settings) -> None:
    """Remember where the files of tasks are; refuse to leave them behind in another folder."""
    before, now = settings.last_task_folder, settings.task_folder
    if settings.data.resolve().is_relative_to(now.resolve()):
        raise Invalid(
            f"{now} cannot be the folder of the tasks: the data folder is in it.",
            hint="name a folder of its own for --task-folder",
        )
    if before.resolve() == now.resolve():
        return
    if _has_any(before / "open"):
        raise Conflict(
            f"{before} has tasks that run, or whose end is not yet recorded.",
            hint=f"start with --task-folder {before}, and wait until they end or cancel them",
        )
    if _has_any(before / "attempts") and not _has_any(now / "attempts"):
        raise Conflict(
            f"The files of tasks, their logs and results, are in {before}.",
            hint=f"move them: mv {before} {now}",
        )
    write_secret(settings.data / TASK_FOLDER_FILE, str(now.resolve()))


def _has_any(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def is_empty(store: Store) -> bool:
    """Whether nothing was ever migrated into a database."""
    with store.read() as connection:
        return current_revision(connection) is None


def traces_of_a_site(settings: Settings) -> list[str]:
    """What a site leaves in its folder besides the database, once that has something in it."""
    found = [settings.admin_token_file]
    attempts = settings.task_folder / "attempts"
    if _has_any(attempts):
        found.append(attempts)
    return [_below(settings.data, each) for each in found if each.exists()]


def _below(folder: Path, path: Path) -> str:
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


@contextmanager
def existing_store(settings: Settings) -> Iterator[Store]:
    """The database of a server, for what is done beside it; none is made, and none is changed."""
    path = settings.data / DATABASE_FILE
    if settings.database is None and not path.is_file():
        raise Invalid(
            f"{path} does not exist: {settings.data} is not a server's data folder.",
            hint="give the --data and --database that the server is started with",
        )
    store = Store.open(settings.address)
    try:
        require_latest(store)
        yield store
    finally:
        store.close()


def write_secret(path: Path, secret: str) -> None:
    """Write a secret, whole, so that only its owner can ever read it.

    It is on the disk before the database knows of it: it is shown nowhere else.
    """
    try:
        write_whole(path, f"{secret}\n".encode())
    except OSError as error:
        raise Invalid(f"{path} cannot be written: {error.strerror}.") from None
