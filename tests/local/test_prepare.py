"""From a launch to a command: files, placeholders, the environment."""

# ruff: noqa: S108 - these paths are the ones that tasks see

from __future__ import annotations

import base64
import os
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.backends.local.errors import Unstartable
from bough.backends.local.preparation.layout import Surroundings, TaskLayout
from bough.backends.local.preparation.prepare_task import Place, prepare
from bough.backends.local.task_command import TaskLimits
from bough.backends.placeholders import Meaning
from bough.model.backend import Launch
from bough.model.task_template import (
    CheckpointSpec,
    CredentialUse,
    FileSpec,
    InputSpec,
    TaskTemplate,
)
from tests.local.desk import SANDBOX, Desk


@pytest.fixture
def desk(tmp_path) -> Desk:
    return Desk(tmp_path)


def test_placeholders_are_filled_in_arguments_variables_and_files(desk):
    template = TaskTemplate(
        command=("sh", "{{ output }}"),
        args=("{{input:0}}", "{{input:1}}", "{{ unknown }}", "{{host:the-master}}"),
        environment={"WHERE": "{{output}}/x", "WHO": "{{\tworkflow_id }}"},
        inputs=(InputSpec(url="s3://a/b"),),
        files=(
            FileSpec("/tmp/run.sh", "cat {{input:0}} > {{output}}"),
            FileSpec("raw", base64.b64encode(b"{{output}}\0").decode(), base64=True),
        ),
    )

    command = desk.prepare(template)

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


def test_the_uuid_of_the_workflow_is_filled_in_where_it_is_known():
    assert "run 5f" == Meaning("w-1", "/out", uuid="5f").fill("run {{uuid}}")
    assert "run {{uuid}}" == Meaning("w-1", "/out").fill("run {{uuid}}")


def test_variables_in_a_command_are_replaced_as_kubernetes_does_it(desk):
    template = TaskTemplate(
        command=("sh", "$(NAME)x$(NAME)", "$$(NAME)", "$(unknown) $() $(NAME", "a$$b$c$$"),
        args=("$(BOUGH_TASK)", "$(OTHER)", "$(HOME)"),
        environment={"NAME": "n", "OTHER": "$(NAME)"},
    )
    expected = ("sh", "nxn", "$(NAME)", "$(unknown) $() $(NAME", "a$$b$c$$")
    assert (*expected, "task-1", "$(NAME)", "$(HOME)") == desk.prepare(template).argv


def test_files_land_where_the_spec_says_within_the_view(desk):
    files = tuple(
        FileSpec(path, path)
        for path in ("a", "b//./c", "/tmp/d", "/workspace/e/f", "/osmo/work/g", "/osmo/x/h", "/i")
    )
    desk.prepare(TaskTemplate(command=("true",), files=(*files, FileSpec("{{output}}/j", "j"))))

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
    message = desk.refuse(TaskTemplate(command=("true",), files=(FileSpec(path, "x"),)))

    assert message.startswith("files[0]: ")
    assert why in message


def test_a_file_that_is_there_already_is_refused(desk):
    files = (FileSpec("/tmp/a", "1"), FileSpec("/tmp/./a", "2"))

    assert 'files[1]: "/tmp/./a" already exists' == desk.refuse(
        TaskTemplate(command=("true",), files=files)
    )


def test_a_file_below_a_file_is_refused(desk):
    files = (FileSpec("/tmp/a", "1"), FileSpec("/tmp/a/b", "2"))

    assert 'files[1]: "/tmp/a/b" is below something that is a file' == desk.refuse(
        TaskTemplate(command=("true",), files=files)
    )


def test_contents_that_are_no_base64_are_refused(desk):
    message = desk.refuse(
        TaskTemplate(command=("true",), files=(FileSpec("a", "@@", base64=True),))
    )

    assert message.startswith("files[0]: the contents are not valid base64")


def test_without_a_view_an_absolute_path_is_refused_and_says_what_would_allow_it(desk):
    message = desk.refuse(
        TaskTemplate(command=("true",), files=(FileSpec("/tmp/x", "x"),)), sandbox=None
    )

    assert 'the absolute path "/tmp/x" is not possible' in message
    assert "a server that runs as root, or with bubblewrap installed, allows" in message


def test_without_a_view_the_folders_are_seen_as_they_are(desk):
    command = desk.prepare(
        TaskTemplate(
            command=("{{output}}",), files=(FileSpec("a", ""), FileSpec("{{output}}/b", ""))
        ),
        sandbox=None,
    )

    assert (str(desk.folder / "output"),) == command.argv
    assert (None, str(desk.folder / "work")) == (command.sandbox, command.working_folder)
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


@given(st.lists(paths, min_size=1, max_size=4), st.sampled_from([SANDBOX, None]), st.booleans())
def test_no_path_of_a_spec_leaves_the_folder_of_the_attempt(written, sandbox, contained):
    with tempfile.TemporaryDirectory() as name:
        desk = Desk(Path(name), container_runner="docker" if contained else None)
        template = TaskTemplate(
            image="image",
            command=("true",),
            files=tuple(FileSpec(path, "canary") for path in written),
            checkpoints=(CheckpointSpec(written[0], "s3://a", 1),),
            credentials=(CredentialUse("key", written[-1]),),
        )
        try:
            command = desk.prepare(template, sandbox, secrets={"key": {"a": "canary"}})
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
    layout = TaskLayout(Path("/attempt"), surroundings)
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
        TaskTemplate(
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
    assert why in desk.refuse(TaskTemplate(command=("true",), environment=variables))


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("a\0b",), "number 1 is not valid text"),
        (("a", "x" * 140_000), "number 2 is longer than 131071 bytes; write it to a file"),
        (("", "a"), "the first one, the program to run, is empty"),
    ],
)
def test_arguments_that_no_process_can_have_are_refused(argv, why, desk):
    assert why in desk.refuse(TaskTemplate(command=argv))


def test_a_task_that_says_nothing_to_run_is_told_what_to_write(desk):
    assert (
        'task "task-1" has nothing to run (its image "ubuntu" is not used here); write for '
        'example `command: ["bash", "-c"]` and `args: ["echo hello"]`'
    ) == desk.refuse(TaskTemplate(image="ubuntu"))


def test_a_task_that_only_holds_its_gpus_sleeps(desk):
    place = Place(desk.options, SANDBOX, desk.folder, "flow-1")

    assert ("sleep", "60") == prepare(place, Launch("a", "a", "n", hold_s=60)).argv


def test_limits_are_what_was_asked_for(desk, tmp_path):
    limits = desk.prepare(cpu_milli=2_000, memory_bytes=2**30).limits
    assert TaskLimits(2_000, 2**30, 32_768, limits.devices) == limits
    assert limits.devices is not None
    bare = Desk(tmp_path / "b").prepare().limits
    assert TaskLimits(processes=32_768, devices=bare.devices) == bare
    switched_off = Desk(tmp_path / "c", limits=False)
    assert TaskLimits() == switched_off.prepare(cpu_milli=2_000, memory_bytes=2**30).limits
