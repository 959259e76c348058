"""From a launch to a command: credentials, inputs, outputs and checkpoints."""

# ruff: noqa: S108 - these paths are the ones that tasks see

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from bough.backends.local.data.copying import copy_files
from bough.backends.local.task_command import Copy, Mount
from bough.model.task_template import (
    CheckpointSpec,
    CredentialUse,
    InputSpec,
    OutputSpec,
    TaskTemplate,
)
from tests.local.desk import Desk


@pytest.fixture
def desk(tmp_path) -> Desk:
    return Desk(tmp_path)


def test_credentials_are_files_that_only_their_user_reads_or_variables(desk):
    template = TaskTemplate(
        command=("true",),
        credentials=(CredentialUse("store", "/keys"), CredentialUse("hub", None, {"TOKEN": "t"})),
    )

    command = desk.prepare(template, secrets={"store": {"id": "me", "key": "k"}, "hub": {"t": "s"}})

    assert "s" == command.environment["TOKEN"]
    assert Mount(str(desk.folder / "secrets/0"), "/keys") in command.sandbox.mounts
    assert {"secrets/0/id": b"me", "secrets/0/key": b"k"} == desk.files()
    assert 0o400 == stat.S_IMODE((desk.folder / "secrets/0/key").stat().st_mode)


def test_without_a_view_credentials_are_below_the_working_folder(desk):
    template = TaskTemplate(command=("true",), credentials=(CredentialUse("store", "keys"),))

    desk.prepare(template, sandbox=None, secrets={"store": {"id": "me"}})

    assert {"work/keys/id": b"me"} == desk.files()


@pytest.mark.parametrize(
    ("use", "secrets", "why"),
    [
        (CredentialUse("store", "/keys"), {}, 'there is no credential "store" of the user'),
        (
            CredentialUse("store", None, {"A": "x"}),
            {"store": {"id": "geheim"}},
            '"store" has no key "x", which the variable "A" should have; it has "id"',
        ),
        (
            CredentialUse("store", "/keys"),
            {"store": {"../id": "geheim"}},
            'the key "../id" of "store" cannot be the name of a file',
        ),
        (CredentialUse("store", "/etc"), {"store": {"a": "geheim"}}, '"/etc" is in /etc of this'),
        (CredentialUse("store", "/etc/keys"), {"store": {"a": "geheim"}}, "is in /etc of this"),
    ],
)
def test_a_credential_that_is_missing_is_named_and_no_value_is(use, secrets, why, desk):
    message = desk.refuse(TaskTemplate(command=("true",), credentials=(use,)), secrets=secrets)

    assert message.startswith("credentials: ")
    assert why in message
    assert "geheim" not in message


def test_two_credentials_at_one_place_are_refused(desk):
    uses = (CredentialUse("a", "/keys"), CredentialUse("b", "/keys/"))

    message = desk.refuse(
        TaskTemplate(command=("true",), credentials=uses), secrets={"a": {}, "b": {}}
    )

    assert 'credentials: two have the path "/keys/"' == message


def test_results_of_other_tasks_are_mounted_and_data_that_is_picked_from_is_copied(desk):
    results = desk.path / "local" / "results"
    (results / "flow-1" / "first").mkdir(parents=True)
    (results / "other-7" / "second").mkdir(parents=True)
    template = TaskTemplate(
        command=("true",),
        inputs=(
            InputSpec(task="first"),
            InputSpec(task="second", workflow="other-7", regex=r".*\.txt"),
            InputSpec(url="s3://bucket/not/there"),
        ),
    )

    command = desk.prepare(template)

    assert (
        Mount(str(results / "flow-1/first"), "/osmo/data/input/0"),
        Mount(str(desk.folder / "input/1"), "/osmo/data/input/1"),
        Mount(str(desk.folder / "input/2"), "/osmo/data/input/2"),
    ) == command.sandbox.mounts[2:]
    assert (
        Copy(str(results / "other-7/second"), str(desk.folder / "input/1"), r".*\.txt"),
        Copy(
            str(desk.path / "local/data/s3/bucket/not/there"),
            str(desk.folder / "input/2"),
            optional=True,
        ),
    ) == command.inputs


def test_without_a_view_all_inputs_are_copied(desk):
    (desk.path / "local" / "results" / "flow-1" / "first").mkdir(parents=True)

    command = desk.prepare(
        TaskTemplate(command=("ls", "{{input:0}}"), inputs=(InputSpec(task="first"),)), sandbox=None
    )

    assert ("ls", str(desk.folder / "input/0")) == command.argv
    assert [str(desk.folder / "input/0")] == [each.target for each in command.inputs]


def test_results_that_are_not_there_are_named(desk):
    assert (
        'inputs[0]: the results of task "first" of workflow "flow-1" are not on this machine; it '
        "was not completed here, or they are kept no longer"
    ) == desk.refuse(TaskTemplate(command=("true",), inputs=(InputSpec(task="first"),)))


def test_outputs_are_copied_to_their_urls_and_then_become_the_results(tmp_path):
    desk = Desk(tmp_path)
    template = TaskTemplate(
        command=("true",), outputs=(OutputSpec("s3://b/{{workflow_id}}/", r".*\.json"),)
    )

    local, output = desk.path / "local", str(desk.folder / "output")

    assert (
        Copy(output, str(local / "data/s3/b/flow-1"), r".*\.json"),
        Copy(output, str(local / "results/flow-1/task-1"), move=True),
    ) == desk.prepare(template).outputs


def test_a_checkpoint_keeps_the_name_of_its_folder_below_the_url(desk):
    template = TaskTemplate(
        command=("true",),
        checkpoints=(
            CheckpointSpec("/tmp/models", "s3://b/p", 60),
            CheckpointSpec("logs/*", "s3://b/p", 0, ".*"),
        ),
    )

    target = str(desk.path / "local/data/s3/b/p")
    assert (
        Copy(str(desk.folder / "tmp/models"), target, None, 60, named=True, optional=True),
        Copy(str(desk.folder / "work/logs"), target, ".*", 1, named=False, optional=True),
    ) == desk.prepare(template).checkpoints


def test_the_next_attempt_finds_the_checkpoint_of_the_one_before(desk):
    template = TaskTemplate(
        command=("cat", "{{input:0}}/snapshot"),
        checkpoints=(CheckpointSpec("/tmp/models", "s3://bucket/path", 60),),
        inputs=(InputSpec(url="s3://bucket/path/models"),),
    )
    first = desk.prepare(template)
    assert [0] == [copy_files(each).files for each in first.inputs]
    (desk.folder / "tmp" / "models").mkdir()
    (desk.folder / "tmp" / "models" / "snapshot").write_text("epoch 7")
    assert [1] == [copy_files(each).files for each in first.checkpoints]
    desk.folder = desk.path / "local" / "attempts" / "b" / "task"
    desk.folder.mkdir(parents=True)

    second = desk.prepare(template)

    (mount,) = (each for each in second.sandbox.mounts if each.target == "/osmo/data/input/0")
    assert ((), "epoch 7") == (second.inputs, Path(mount.source, "snapshot").read_text())


def test_a_regex_that_is_not_valid_is_refused(desk):
    message = desk.refuse(TaskTemplate(command=("true",), outputs=(OutputSpec("s3://b", "("),)))

    assert message.startswith("outputs[0].regex: '(' is not a regular expression")


def test_each_pool_has_its_own_data_and_reads_what_an_earlier_version_kept_for_all(desk):
    template = TaskTemplate(
        command=("true",),
        inputs=(InputSpec(url="s3://bucket/set"),),
        outputs=(OutputSpec("s3://bucket/set"),),
        checkpoints=(CheckpointSpec("/tmp/set/*", "s3://bucket/set", 60),),
    )
    local = desk.path / "local"
    shared, own = local / "data/s3/bucket/set", local / "pools/first/s3/bucket/set"

    def shown(**launch) -> dict[str, str]:
        desk.folder = Path(f"{desk.folder}x")
        desk.folder.mkdir(parents=True)
        command = desk.prepare(template, **launch)
        for each in command.inputs:
            copy_files(each)
        (mount,) = (each for each in command.sandbox.mounts if each.target == "/osmo/data/input/0")
        found = Path(mount.source)
        return {each.name: each.read_text() for each in found.iterdir()} if found.exists() else {}

    assert {} == shown(pool="first")
    shared.mkdir(parents=True)
    (shared / "old").write_text("old")
    (shared / "both").write_text("old")
    assert {"old": "old", "both": "old"} == shown(pool="first") == shown(pool="second")
    own.mkdir(parents=True)
    (own / "both").write_text("new")
    assert {"old": "old", "both": "new"} == shown(pool="first")
    assert {"old": "old", "both": "old"} == shown(pool="second")

    for copies in (desk.prepare(template, pool="first").outputs[:1],):
        assert [str(own)] == [each.target for each in copies]
    desk.folder = Path(f"{desk.folder}x")
    desk.folder.mkdir()
    assert [str(own)] == [each.target for each in desk.prepare(template, pool="first").checkpoints]
