"""The workflow that `bough run` makes of a command."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.backends.local import options
from bough.backends.local.preparation.environment import expand
from bough.errors import Invalid
from bough.formats.workflow.templates import is_template
from bough.formats.workflow.workflow import read_workflow
from bough.tools.run_spec import SEARCH_PATH, enter_environment, make_spec, name_of

#: What a program can be given: anything but NUL, and no halves of characters.
WORDS = st.lists(
    st.one_of(
        st.sampled_from(["$(x)", "$$", "{{", "{%", *"{}%#\\\"'$\n: -()"]),
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
    ),
    max_size=20,
).map("".join)


def spec_of(*command: str, environment: dict[str, str] | None = None) -> str:
    return make_spec(
        command,
        name=name_of(command),
        image=None,
        resources={"gpu": 1},
        environment=environment or {},
        timeout=None,
    )


@given(st.lists(WORDS, min_size=1, max_size=4), st.dictionaries(st.just("NAME"), WORDS))
def test_every_command_is_read_as_it_was_given_and_is_no_template(
    words: list[str], environment: dict[str, str]
):
    text = spec_of(*words, environment=environment)
    assert not is_template(text)
    spec = read_workflow(text).spec
    assert spec is not None
    (launch,) = [task.launch for group in spec.groups for task in group.tasks]
    assert launch is not None
    started = [expand(each, {"x": "y"}) for each in launch.command]
    assert (words, environment) == (started, launch.environment)


def test_what_tasks_fill_in_is_filled_in():
    spec = read_workflow(spec_of("cp", "x", "{{output}}")).spec
    assert spec is not None
    launch = spec.groups[0].tasks[0].launch
    assert launch is not None
    assert ("cp", "x", "{{output}}") == launch.command


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("python3", "/home/me/train.py", "--lr", "1"), "train"),
        (("python", "-m", "train"), "python"),
        (("./scripts/run_all.sh",), "run_all-sh"),
        (("nvidia-smi",), "nvidia-smi"),
        (("torchrun", "train.py"), "train"),
        (("7z", "x"), "z"),
        (("...",), "run"),
        (("x" * 100,), "x" * 40),
    ],
)
def test_a_workflow_is_called_as_its_program_or_script(command: tuple[str, ...], name: str):
    assert name == name_of(command)


def test_an_environment_of_python_comes_first_in_the_path():
    command, variables = enter_environment(["python", "a.py"], "/data/venv/", None)
    assert (["/data/venv", "python", "a.py"], "/data/venv") == (
        command[-3:],
        variables["VIRTUAL_ENV"],
    )
    assert f"/data/venv/bin:{SEARCH_PATH}" == variables["PATH"]
    _, variables = enter_environment(["python"], None, "/opt/conda/envs/x")
    assert "/opt/conda/envs/x" == variables["CONDA_PREFIX"]
    assert ["conda", "run", "--no-capture-output", "-n", "x", "python"] == (
        enter_environment(["python"], None, "x")[0]
    )
    assert SEARCH_PATH == options.SEARCH_PATH


@pytest.mark.parametrize(("venv", "conda"), [("venv", None), (None, "./x"), ("/a", "/b")])
def test_an_environment_that_could_not_be_found_is_refused(venv: str | None, conda: str | None):
    with pytest.raises(Invalid, match=r"must begin with /|cannot be used together"):
        enter_environment(["python"], venv, conda)
