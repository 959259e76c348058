"""From a launch to a command: files, placeholders, credentials, data, images."""

# ruff: noqa: S108 - these paths are the ones that tasks see

from __future__ import annotations

import base64
import os
import pwd
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.backends.local.accounts import account_warnings
from bough.backends.local.command import Bounds, Copy, Limits, Mount, ViewKind
from bough.backends.local.copying import copy_files
from bough.backends.local.faults import Unstartable
from bough.backends.local.layout import Layout, Surroundings
from bough.backends.local.options import LocalOptions
from bough.backends.local.placeholders import Meaning
from bough.backends.local.prepare import Place, clean_up, prepare
from bough.model.backend import Launch
from bough.model.recipe import (
    CheckpointSpec,
    CredentialUse,
    FileSpec,
    InputSpec,
    OutputSpec,
    Recipe,
)

VIEW = ViewKind.NAMESPACES
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run tasks as others")


class Desk:
    """Prepares tasks in a folder of its own."""

    def __init__(self, path: Path, **options) -> None:
        self.path = path.resolve()
        self.options = LocalOptions(self.path / "local", **options)
        self.folder = self.path / "local" / "attempts" / "a" / "task"
        self.folder.mkdir(parents=True)

    def prepare(self, recipe=None, view=VIEW, gpus=(), **launch):
        recipe = Recipe(command=("true",)) if recipe is None else recipe
        place = Place(self.options, view, self.folder, "flow-1")
        return prepare(place, Launch("task-1/0", "task-1", "node", spec=recipe, **launch), gpus)

    def refuse(self, recipe, view=VIEW, **launch) -> str:
        with pytest.raises(Unstartable) as refused:
            self.prepare(recipe, view, **launch)
        return refused.value.message

    def files(self) -> dict[str, bytes]:
        return {
            str(each.relative_to(self.folder)): each.read_bytes()
            for each in self.folder.rglob("*")
            if each.is_file()
        }


@pytest.fixture
def desk(tmp_path) -> Desk:
    return Desk(tmp_path)


def test_placeholders_are_filled_in_arguments_variables_and_files(desk):
    recipe = Recipe(
        command=("sh", "{{ output }}"),
        args=("{{input:0}}", "{{input:1}}", "{{ unknown }}", "{{host:the-master}}"),
        environment={"WHERE": "{{output}}/x", "WHO": "{{\tworkflow_id }}"},
        inputs=(InputSpec(url="s3://a/b"),),
        files=(
            FileSpec("/tmp/run.sh", "cat {{input:0}} > {{output}}"),
            FileSpec("raw", base64.b64encode(b"{{output}}\0").decode(), base64=True),
        ),
    )

    command = desk.prepare(recipe)

    assert (
        "sh",
        "/osmo/data/output",
        "/osmo/data/input/0",
        "{{input:1}}",
        "{{ unknown }}",
        "127.0.0.1",
    ) == command.argv
    assert "/osmo/data/output/x" == command.environment["WHERE"]
    assert "flow-1" == command.environment["WHO"]
    assert {
        "tmp/run.sh": b"cat /osmo/data/input/0 > /osmo/data/output",
        "work/raw": b"{{output}}\0",
    } == desk.files()


def test_what_is_filled_in_is_not_read_again():
    meaning = Meaning("{{output}}", "/out")

    assert "{{output}}" == meaning.fill("{{workflow_id}}")


def test_files_land_where_the_spec_says_within_the_view(desk):
    files = tuple(
        FileSpec(path, path)
        for path in ("a", "b//./c", "/tmp/d", "/workspace/e/f", "/osmo/work/g", "/osmo/x/h", "/i")
    )
    desk.prepare(Recipe(command=("true",), files=(*files, FileSpec("{{output}}/j", "j"))))

    assert {
        "work/a",
        "work/b/c",
        "tmp/d",
        "root/workspace/e/f",
        "work/g",
        "root/osmo/x/h",
        "root/i",
        "output/j",
    } == set(desk.files())
    assert 0o644 == stat.S_IMODE((desk.folder / "tmp/d").stat().st_mode)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("../x", 'the path "../x" is not possible: it must not contain ".."'),
        ("/tmp/../../etc/x", 'it must not contain ".."'),
        ("", "it names no file or folder"),
        ("/", "it names no file or folder"),
        ("/tmp", '"/tmp" is a folder; name something below it'),
        ("{{output}}", '"/osmo/data/output" is a folder; name something below it'),
        ("a\0b", "it contains characters that cannot be shown"),
        ("a\nb", "it contains characters that cannot be shown"),
        ("x" * 256, "a part of it is longer than 255 bytes"),
        ("x/" * 600, "it is longer than 1024 bytes"),
        (
            "/etc/passwd",
            (
                '"/etc/passwd" is in /etc of this machine, which tasks see but cannot change; '
                "possible are paths below /tmp, relative paths (below the working folder), and "
                "new top-level folders such as /workspace"
            ),
        ),
        ("/bin/sh", "is in /bin of this machine"),
        ("/proc/x", "is in /proc of this machine"),
        ("/dev/shm/x", "is in /dev of this machine"),
        ("/osmo/data/input/0/x", "holds the inputs and is read-only"),
        ("/osmo/data/input", "holds the inputs and is read-only"),
        ("/osmo/data", "holds the inputs and is read-only"),
    ],
)
def test_a_path_that_is_not_possible_is_refused_by_name(path, why, desk):
    message = desk.refuse(Recipe(command=("true",), files=(FileSpec(path, "x"),)))

    assert message.startswith("files[0]: ")
    assert why in message


def test_a_file_that_is_there_already_is_refused(desk):
    files = (FileSpec("/tmp/a", "1"), FileSpec("/tmp/./a", "2"))

    assert 'files[1]: "/tmp/./a" is there already' == desk.refuse(
        Recipe(command=("true",), files=files)
    )


def test_a_file_below_a_file_is_refused(desk):
    files = (FileSpec("/tmp/a", "1"), FileSpec("/tmp/a/b", "2"))

    assert 'files[1]: "/tmp/a/b" is below something that is a file' == desk.refuse(
        Recipe(command=("true",), files=files)
    )


def test_contents_that_are_no_base64_are_refused(desk):
    message = desk.refuse(Recipe(command=("true",), files=(FileSpec("a", "@@", base64=True),)))

    assert message.startswith("files[0]: the contents are not valid base64")


def test_without_a_view_an_absolute_path_is_refused_and_says_what_would_allow_it(desk):
    message = desk.refuse(Recipe(command=("true",), files=(FileSpec("/tmp/x", "x"),)), view=None)

    assert 'the absolute path "/tmp/x" is not possible' in message
    assert "a server that runs as root, or with bubblewrap installed, allows" in message


def test_without_a_view_the_folders_are_seen_as_they_are(desk):
    command = desk.prepare(
        Recipe(command=("{{output}}",), files=(FileSpec("a", ""), FileSpec("{{output}}/b", ""))),
        view=None,
    )

    assert (str(desk.folder / "output"),) == command.argv
    assert (None, str(desk.folder / "work")) == (command.view, command.working_folder)
    assert {"work/a", "output/b"} == set(desk.files())


parts = st.one_of(
    st.sampled_from(["..", ".", "", "tmp", "osmo", "data", "input", "etc", "a", "~", "root"]),
    st.text(max_size=8),
)
paths = st.one_of(
    st.text(max_size=30),
    st.builds(
        lambda slash, each: slash + "/".join(each),
        st.sampled_from(["", "/", "//"]),
        st.lists(parts, max_size=6),
    ),
)


@given(st.lists(paths, min_size=1, max_size=4), st.sampled_from([VIEW, None]), st.booleans())
def test_no_path_of_a_spec_leaves_the_folder_of_the_attempt(written, view, contained):
    with tempfile.TemporaryDirectory() as name:
        desk = Desk(Path(name), container_runner="docker" if contained else None)
        recipe = Recipe(
            image="image",
            command=("true",),
            files=tuple(FileSpec(path, "canary") for path in written),
            checkpoints=(CheckpointSpec(written[0], "s3://a", 1),),
            credentials=(CredentialUse("key", written[-1]),),
        )
        try:
            command = desk.prepare(recipe, view, secrets={"key": {"a": "canary"}})
        except Unstartable:
            command = None
        found = [each for each in Path(name).rglob("*") if each.is_file()]
        assert [] == [each for each in found if not each.is_relative_to(desk.folder)]
        assert [] == [each for each in found if each.is_symlink()]
        if command is not None:
            (checkpoint,) = command.checkpoints
            assert Path(os.path.normpath(checkpoint.source)).is_relative_to(desk.folder)
            assert [] == [each for each in command.argv if "/.." in each]


@given(paths, st.sampled_from(list(Surroundings)))
def test_every_path_has_its_place_below_a_folder_that_the_server_made(path, surroundings):
    layout = Layout(Path("/attempt"), surroundings)
    try:
        spot = layout.locate(path, "files[0]")
    except Unstartable:
        return
    assert spot.base in {layout.work, layout.output, layout.temporary, layout.root}
    assert () != spot.parts
    assert [] == [each for each in spot.parts if each in {"", ".", ".."} or "/" in each]


def test_nothing_of_the_servers_environment_is_leaked(desk, monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_SERVER", "x")
    monkeypatch.setenv("PATH", "/server/bin:" + os.environ["PATH"])

    environment = desk.prepare(
        Recipe(
            command=("true",),
            environment={
                "LD_PRELOAD": "mine.so",
                "HOME": "/home/me",
                "CUDA_VISIBLE_DEVICES": "0,1,2,3",
                "BOUGH_ATTEMPT": "another",
            },
        ),
        gpus=(2, 5),
        retry_id=3,
    ).environment

    assert {
        "BOUGH_ATTEMPT": "task-1/0",
        "BOUGH_OUTPUT": "/osmo/data/output",
        "BOUGH_RETRY_ID": "3",
        "BOUGH_TASK": "task-1",
        "BOUGH_WORKFLOW_ID": "flow-1",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": "2,5",
        "HOME": "/home/me",
        "LANG": "C.UTF-8",
        "LD_PRELOAD": "mine.so",
        "LOGNAME": "bough",
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "PWD": "/osmo/work",
        "TMPDIR": "/tmp",
        "USER": "bough",
    } == environment


def test_a_task_without_gpus_sees_none(desk):
    assert "" == desk.prepare().environment["CUDA_VISIBLE_DEVICES"]


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"": "x"}, '"" cannot be the name of a variable'),
        ({"A=B": "x"}, '"A=B" cannot be the name of a variable'),
        ({"A\0": "x"}, "cannot be the name of a variable"),
        ({"A\n": "x"}, "cannot be the name of a variable"),
        ({"A": "x\0y"}, 'the value of "A" is not valid text'),
        ({"A": "\ud800"}, 'the value of "A" is not valid text'),
        ({"A": "x" * 140_000}, '"A" is longer than 131071 bytes; write it to a file'),
        (
            {f"A{number}": "x" * 100_000 for number in range(11)},
            "together they are longer than 1048576 bytes",
        ),
    ],
)
def test_variables_that_no_process_can_have_are_refused(variables, why, desk):
    assert why in desk.refuse(Recipe(command=("true",), environment=variables))


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("a\0b",), "number 1 is not valid text"),
        (("a", "x" * 140_000), "number 2 is longer than 131071 bytes; write it to a file"),
        (("", "a"), "the first one, the program to run, is empty"),
    ],
)
def test_arguments_that_no_process_can_have_are_refused(argv, why, desk):
    assert why in desk.refuse(Recipe(command=argv))


def test_a_task_that_says_nothing_to_run_is_told_what_to_write(desk):
    assert (
        'task "task-1" says nothing to run (its image "ubuntu" is not used here); write for '
        'example `command: ["bash", "-c"]` and `args: ["echo hello"]`'
    ) == desk.refuse(Recipe(image="ubuntu"))


def test_a_task_that_only_holds_its_gpus_sleeps(desk):
    place = Place(desk.options, VIEW, desk.folder, "flow-1")

    assert ("sleep", "60") == prepare(place, Launch("a", "a", "n", hold_s=60)).argv


def test_limits_are_what_was_asked_for(desk, tmp_path):
    assert Limits(2_000, 2**30) == desk.prepare(cpu_milli=2_000, memory_bytes=2**30).limits
    assert Limits() == Desk(tmp_path / "b").prepare().limits
    switched_off = Desk(tmp_path / "c", limits=False)
    assert Limits() == switched_off.prepare(cpu_milli=2_000, memory_bytes=2**30).limits


def test_credentials_are_files_that_only_their_user_reads_or_variables(desk):
    recipe = Recipe(
        command=("true",),
        credentials=(CredentialUse("store", "/keys"), CredentialUse("hub", None, {"TOKEN": "t"})),
    )

    command = desk.prepare(recipe, secrets={"store": {"id": "me", "key": "k"}, "hub": {"t": "s"}})

    assert "s" == command.environment["TOKEN"]
    assert Mount(str(desk.folder / "secrets/0"), "/keys") in command.view.mounts
    assert {"secrets/0/id": b"me", "secrets/0/key": b"k"} == desk.files()
    assert 0o400 == stat.S_IMODE((desk.folder / "secrets/0/key").stat().st_mode)


def test_without_a_view_credentials_are_below_the_working_folder(desk):
    recipe = Recipe(command=("true",), credentials=(CredentialUse("store", "keys"),))

    desk.prepare(recipe, view=None, secrets={"store": {"id": "me"}})

    assert {"work/keys/id": b"me"} == desk.files()


@pytest.mark.parametrize(
    ("use", "secrets", "why"),
    [
        (CredentialUse("store", "/keys"), {}, 'there is no credential "store" of the user'),
        (
            CredentialUse("store", None, {"A": "x"}),
            {"store": {"id": "geheim"}},
            '"store" has no key "x", which the variable "A" is to get; it has "id"',
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
    message = desk.refuse(Recipe(command=("true",), credentials=(use,)), secrets=secrets)

    assert message.startswith("credentials: ")
    assert why in message
    assert "geheim" not in message


def test_two_credentials_at_one_place_are_refused(desk):
    uses = (CredentialUse("a", "/keys"), CredentialUse("b", "/keys/"))

    message = desk.refuse(Recipe(command=("true",), credentials=uses), secrets={"a": {}, "b": {}})

    assert 'credentials: two are to be at "/keys/"' == message


def test_results_of_other_tasks_are_mounted_and_data_that_is_picked_from_is_copied(desk):
    results = desk.path / "local" / "results"
    (results / "flow-1" / "first").mkdir(parents=True)
    (results / "other-7" / "second").mkdir(parents=True)
    recipe = Recipe(
        command=("true",),
        inputs=(
            InputSpec(task="first"),
            InputSpec(task="second", workflow="other-7", regex=r".*\.txt"),
            InputSpec(url="s3://bucket/not/there"),
        ),
    )

    command = desk.prepare(recipe)

    assert (
        Mount(str(results / "flow-1/first"), "/osmo/data/input/0"),
        Mount(str(desk.folder / "input/1"), "/osmo/data/input/1"),
        Mount(str(desk.folder / "input/2"), "/osmo/data/input/2"),
    ) == command.view.mounts[2:]
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
        Recipe(command=("ls", "{{input:0}}"), inputs=(InputSpec(task="first"),)), view=None
    )

    assert ("ls", str(desk.folder / "input/0")) == command.argv
    assert [str(desk.folder / "input/0")] == [each.target for each in command.inputs]


def test_results_that_are_not_there_are_named(desk):
    assert (
        'inputs[0]: the results of task "first" of workflow "flow-1" are not on this machine; it '
        "was not completed here, or they are kept no longer"
    ) == desk.refuse(Recipe(command=("true",), inputs=(InputSpec(task="first"),)))


def test_outputs_are_copied_to_their_urls_and_then_become_the_results(tmp_path):
    desk = Desk(tmp_path, bounds=Bounds(files=7, bytes=8))
    recipe = Recipe(
        command=("true",), outputs=(OutputSpec("s3://b/{{workflow_id}}/", r".*\.json"),)
    )

    local, output = desk.path / "local", str(desk.folder / "output")

    assert (
        Copy(output, str(local / "data/s3/b/flow-1"), r".*\.json", bounds=Bounds(7, 8)),
        Copy(output, str(local / "results/flow-1/task-1"), move=True),
    ) == desk.prepare(recipe).outputs


def test_a_checkpoint_keeps_the_name_of_its_folder_below_the_url(desk):
    recipe = Recipe(
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
    ) == desk.prepare(recipe).checkpoints


def test_the_next_attempt_finds_the_checkpoint_of_the_one_before(desk):
    recipe = Recipe(
        command=("cat", "{{input:0}}/snapshot"),
        checkpoints=(CheckpointSpec("/tmp/models", "s3://bucket/path", 60),),
        inputs=(InputSpec(url="s3://bucket/path/models"),),
    )
    first = desk.prepare(recipe)
    assert [0] == [copy_files(each).files for each in first.inputs]
    (desk.folder / "tmp" / "models").mkdir()
    (desk.folder / "tmp" / "models" / "snapshot").write_text("epoch 7")
    assert [1] == [copy_files(each).files for each in first.checkpoints]
    desk.folder = desk.path / "local" / "attempts" / "b" / "task"
    desk.folder.mkdir(parents=True)

    second = desk.prepare(recipe)

    (mount,) = (each for each in second.view.mounts if each.target == "/osmo/data/input/0")
    assert ((), "epoch 7") == (second.inputs, Path(mount.source, "snapshot").read_text())


def test_a_regex_that_is_not_valid_is_refused(desk):
    message = desk.refuse(Recipe(command=("true",), outputs=(OutputSpec("s3://b", "("),)))

    assert message.startswith('outputs[0]: the regex "(" is not valid')


def test_the_view_hides_the_data_of_the_server(tmp_path):
    desk = Desk(tmp_path, hidden=(tmp_path / "database",))

    view = desk.prepare().view

    assert (str(desk.path / "local"), str(desk.path / "database")) == view.hidden
    assert (str(desk.folder / "tmp"), str(desk.folder / "view")) == (view.temporary, view.root)


def test_new_top_level_folders_are_mounted_also_those_for_checkpoints(desk):
    recipe = Recipe(
        command=("true",),
        files=(FileSpec("/workspace/a", ""), FileSpec("/b", ""), FileSpec("/osmo/c", "")),
        checkpoints=(CheckpointSpec("/models/latest", "s3://b", 1),),
    )

    mounts = desk.prepare(recipe).view.mounts

    assert ["/b", "/models", "/osmo", "/workspace", "/osmo/work", "/osmo/data/output"] == [
        each.target for each in mounts if each.writable
    ]
    assert str(desk.folder / "root" / "models") == mounts[1].source


@needs_root
def test_a_task_runs_as_its_user_who_owns_its_folders(tmp_path):
    nobody = pwd.getpwnam("nobody")
    desk = Desk(tmp_path, as_user=True)
    recipe = Recipe(
        command=("true",),
        files=(FileSpec("a/b", ""),),
        credentials=(CredentialUse("key", "/keys"),),
    )

    command = desk.prepare(recipe, user="nobody", secrets={"key": {"a": "b"}})

    account = command.account
    assert (nobody.pw_uid, nobody.pw_gid) == (account.user_id, account.group_id)
    assert nobody.pw_gid in account.groups
    assert "nobody" == command.environment["USER"]
    for name in ("work", "output", "tmp", "root", "work/a", "work/a/b", "secrets/0/a"):
        assert (name, nobody.pw_uid) == (name, (desk.folder / name).stat().st_uid)
    assert 0 == desk.folder.stat().st_uid


@needs_root
@pytest.mark.parametrize(
    ("user", "view", "why"),
    [
        ("no-such-user", VIEW, "this machine has no user 'no-such-user'"),
        ("", VIEW, "this machine has no user ''"),
        ("a\0b", VIEW, "this machine has no user"),
        ("root", VIEW, "'root' is the superuser of this machine, as whom no task runs"),
        ("nobody", None, "only possible with a private view of the machine"),
    ],
)
def test_a_user_as_whom_no_task_can_run_is_refused(user, view, why, tmp_path):
    desk = Desk(tmp_path, as_user=True)

    assert why in desk.refuse(Recipe(command=("true",)), view, user=user)


@needs_root
def test_what_is_missing_to_run_tasks_as_their_users_is_told_at_the_start(tmp_path, monkeypatch):
    options = LocalOptions(tmp_path, as_user=True)

    (warning,) = account_warnings(LocalOptions(tmp_path), VIEW)
    assert warning.startswith("tasks run as root, and can read every file of this machine")
    assert () == account_warnings(options, VIEW)
    (warning,) = account_warnings(options, None)
    assert warning.endswith("they need a view: none starts")
    monkeypatch.setattr(os, "geteuid", lambda: 1_000)
    (warning,) = account_warnings(options, VIEW)
    assert warning.endswith("the server must be root: none starts")
    assert () == account_warnings(LocalOptions(tmp_path), VIEW)


def test_what_only_a_running_task_needs_is_removed(desk):
    recipe = Recipe(
        command=("true",),
        files=(FileSpec("/tmp/a", ""), FileSpec("/new/b", ""), FileSpec("{{output}}/c", "c")),
        credentials=(CredentialUse("key", "/keys"),),
    )
    desk.prepare(recipe, secrets={"key": {"a": "b"}})
    (desk.folder / "work" / "closed" / "deeper").mkdir(parents=True)
    (desk.folder / "work" / "closed").chmod(0)

    for _ in range(2):
        clean_up(desk.folder)

    assert {"output/c": b"c"} == desk.files()
    assert ["output"] == [each.name for each in desk.folder.iterdir()]


@pytest.fixture
def runner(tmp_path) -> Path:
    """A container runner that only writes down how it was called."""
    program = tmp_path / "docker"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "${0}.called"; env > "${0}.environment"\n')
    program.chmod(0o755)
    return program


def test_an_image_is_run_by_the_container_runner(runner, tmp_path):
    desk = Desk(tmp_path / "desk", container_runner=str(runner))
    recipe = Recipe(
        image="nvcr.io/nvidia/pytorch:24.03-py3",
        command=("bash", "-c"),
        args=("ls {{output}}",),
        environment={"LD_PRELOAD": "evil.so", "TEXT": "two\nlines", "PATH": "/opt/bin"},
        files=(FileSpec("/tmp/run.sh", ""), FileSpec("/etc/motd", "hi")),
        checkpoints=(CheckpointSpec("/models", "s3://b", 60),),
        credentials=(CredentialUse("key", None, {"TOKEN": "t"}),),
    )

    command = desk.prepare(
        recipe, cpu_milli=1_500, memory_bytes=2**30, secrets={"key": {"t": "geheim"}}
    )
    subprocess.run(command.argv, env=command.environment, cwd=command.working_folder, check=True)

    called = Path(f"{runner}.called").read_text()
    task = desk.folder
    expected = [
        *("run", "--rm", "--name", "bough-task-1-0-7e502d5f697b", "--network", "host"),
        *("--workdir", "/osmo/work"),
        *("--volume", f"{task}/tmp:/tmp"),
        *("--volume", f"{task}/work:/osmo/work"),
        *("--volume", f"{task}/output:/osmo/data/output"),
        *("--volume", f"{task}/root/etc/motd:/etc/motd"),
        *("--volume", f"{task}/root/models:/models"),
        *("--env-file", f"{task}/secrets/environment", "--env", "TEXT=two", "lines"),
        *("--cpus", "1.500", "--memory", str(2**30), "--entrypoint", "bash"),
        *("nvcr.io/nvidia/pytorch:24.03-py3", "-c", "ls /osmo/data/output"),
    ]
    assert expected == called.splitlines()
    assert "evil" not in Path(f"{runner}.environment").read_text()
    told = (task / "secrets/environment").read_text().splitlines()
    assert {"LD_PRELOAD=evil.so", "PATH=/opt/bin", "TOKEN=geheim"} <= set(told)
    assert "HOME=/osmo/work" not in told
    assert (str(runner), "rm", "--force", "bough-task-1-0-7e502d5f697b") == command.clean_up
    assert (None, Limits()) == (command.view, command.limits)


def test_an_image_without_a_command_runs_its_own(runner, tmp_path):
    desk = Desk(tmp_path / "desk", container_runner=str(runner))

    assert ("ubuntu:24.04",) == desk.prepare(Recipe(image="ubuntu:24.04")).argv[-1:]


@pytest.mark.parametrize("image", ["--privileged", "-v", "a b", "x\n", "/x", "a" * 600])
def test_what_is_no_name_of_an_image_is_refused(image, runner, tmp_path):
    desk = Desk(tmp_path / "desk", container_runner=str(runner))

    message = desk.refuse(Recipe(image=image))

    assert message.startswith("image: ")
    assert message.endswith(" is not the name of an image")


def test_a_task_without_an_image_runs_on_the_machine_also_with_a_container_runner(runner, tmp_path):
    desk = Desk(tmp_path / "desk", container_runner=str(runner))

    assert ("true",) == desk.prepare().argv
