"""A data folder belongs to a site: its database and the files of its tasks are not left behind."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from bough.errors import Conflict, Invalid
from bough.server.data_folder import settle_task_folder
from bough.server.process import put_together, upgrade_database
from bough.server.settings import Settings
from bough.store import people as people_store


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a site that was started once."""
    settings = Settings(tmp_path_factory.mktemp("started") / "data", backend="virtual", gpus=1)
    with put_together(settings):
        pass
    return settings.data


@pytest.fixture
def settings(started: Path, tmp_path: Path) -> Settings:
    """The same site, for one test alone."""
    shutil.copytree(started, tmp_path / "data")
    return Settings(tmp_path / "data", backend="virtual", gpus=1)


def remove_database(settings: Settings) -> Path:
    path = Path(settings.address)
    for each in path.parent.glob(f"{path.name}*"):
        each.unlink()
    return path


@pytest.mark.parametrize("left", ["nothing", "an empty file"])
def test_an_empty_database_in_the_folder_of_a_site_is_an_error_and_not_a_new_site(
    settings: Settings, left: str
):
    path = remove_database(settings)
    if left != "nothing":
        path.touch()
    token = settings.admin_token_file.read_text()

    for start in (lambda: put_together(settings).__enter__(), lambda: upgrade_database(settings)):
        with pytest.raises(Conflict) as caught:
            start()
        assert "The database is empty, but" in caught.value.message
        assert "it has admin-token." in caught.value.message
        assert "bough restore" in str(caught.value.hint)

    assert token == settings.admin_token_file.read_text()


def test_another_empty_database_is_an_error_too_where_tasks_have_left_their_files(
    settings: Settings, tmp_path: Path
):
    settings.admin_token_file.unlink()
    (settings.data / "local" / "attempts" / "task-0").mkdir(parents=True)
    other = Settings(settings.data, backend="virtual", database=f"sqlite:///{tmp_path}/other.db")
    with pytest.raises(Conflict) as caught:
        put_together(other).__enter__()
    assert "it has local/attempts." in caught.value.message


def test_a_first_start_that_was_killed_early_can_be_made_again(tmp_path: Path):
    settings = Settings(tmp_path / "data", backend="virtual", gpus=1)
    settings.data.mkdir()
    Path(settings.address).touch()
    with put_together(settings) as running, running.site.store.read() as connection:
        assert ["admin"] == [each.name for each in people_store.list_users(connection)]


def told(settings: Settings, folder: Path) -> Settings:
    """The same server, started with --task-folder."""
    return msgspec.structs.replace(settings, tasks=folder)


def test_the_folder_of_the_tasks_is_remembered_for_later_starts(settings: Settings, tmp_path: Path):
    assert settings.data / "local" == settings.task_folder
    with put_together(told(settings, tmp_path / "large")):
        pass
    assert tmp_path / "large" == settings.task_folder
    settle_task_folder(settings)
    assert tmp_path / "large" == settings.task_folder


def test_tasks_that_run_are_not_left_behind_in_another_folder(settings: Settings, tmp_path: Path):
    (settings.data / "local" / "open").mkdir(parents=True)
    (settings.data / "local" / "open" / "task-0").touch()
    with pytest.raises(Conflict, match="has tasks that run, or whose end is not yet recorded"):
        settle_task_folder(told(settings, tmp_path / "large"))
    assert settings.data / "local" == settings.task_folder


def test_logs_are_moved_with_the_folder_of_the_tasks_and_not_lost(
    settings: Settings, tmp_path: Path
):
    (settings.data / "local" / "attempts" / "task-0").mkdir(parents=True)
    large = tmp_path / "large"
    with pytest.raises(Conflict, match="The files of tasks, their logs and results, are in") as one:
        settle_task_folder(told(settings, large))
    assert f"move them: mv {settings.data}/local {large}" == one.value.hint
    (settings.data / "local").rename(large)
    settle_task_folder(told(settings, large))
    assert large == settings.task_folder


@pytest.mark.parametrize("above", [".", ".."])
def test_the_data_folder_cannot_be_in_the_folder_of_the_tasks(settings: Settings, above: str):
    with pytest.raises(Invalid, match="cannot be the folder of the tasks"):
        settle_task_folder(told(settings, settings.data / above))
