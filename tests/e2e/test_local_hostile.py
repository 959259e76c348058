"""Workflows that mean harm: what they ask for is refused, and what they do stays with them."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.local import (
    Attempt,
    Local,
    gang,
    hosting,
    job,
    resources,
    serving_locally,
    task,
)

#: Asks the server, then waits for its address, and writes down what it is sent there.
TAKE_THE_PLACE = """
exec python3 -c '
import socket, time
with socket.socket() as line:
    print("asked:", line.connect_ex(("127.0.0.1", {port})), flush=True)
while True:
    try:
        listener = socket.create_server(("127.0.0.1", {port}))
        break
    except OSError:
        time.sleep(0.001)
print("listens", flush=True)
line, _ = listener.accept()
print("was sent:", line.recv(1000), flush=True)
'
"""


@pytest.fixture(scope="module")
def host() -> Iterator[Local]:
    """A server whose data is where tasks would see it, if nothing hid it."""
    # Not in /tmp or /var/tmp, of which tasks have their own.
    base = "/var/lib" if os.geteuid() == 0 else str(Path.home())
    folder = Path(tempfile.mkdtemp(prefix="bough-", dir=base))
    folder.chmod(0o755)
    try:
        with serving_locally(folder, 8) as local:
            local.pool("p", 8)
            yield local
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def local(host: Local) -> Iterator[Local]:
    yield host
    for name in host.alive():
        host.done("workflow", "cancel", "--force", name)


def refused(local: Local, workflow: Any, *options: str) -> str:
    """Why a workflow is not accepted."""
    path = local.write(workflow)
    ended = local.osmo("workflow", "submit", "--pool", "p", *options, path)
    assert ended.code in (1, 2), ended
    assert "Traceback" not in ended.errors
    assert all(each.isprintable() or each == "\n" for each in ended.errors)
    return ended.errors


def outcome(local: Local, script: str, **fields: Any) -> list[str]:
    """What a task wrote that ran such a script to its end."""
    name = local.submit("p", 1, "NORMAL", script=f"{script}\necho end", **fields)
    local.over(name)
    lines = [line.removeprefix("[main] ") for line in local.log(name)]
    lines.remove("end")
    return lines


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[31mb", "../a", "a b", "ä", "a\x00b", "x" * 300])
def test_names_that_are_none_are_refused(local: Local, name: str):
    assert "name" in refused(local, job(1, name=name))
    assert "name" in refused(local, {**job(1), "tasks": [task(name)]})


def test_labels_that_would_forge_lines_are_refused(local: Local):
    assert "label" in refused(local, {**job(1), "labels": {"a": "x\nforged: line"}})
    assert "label" in refused(local, {**job(1), "labels": {"\x1b[2J": "x"}})
    assert "label" in refused(local, job(1), "--label", "a=x\ny")


@pytest.mark.parametrize("path", ["../evil", "/new/../evil", "a/../../evil", "/", "..", "a\nb"])
def test_files_outside_of_the_task_are_not_written(local: Local, path: str):
    workflow = job(1, files=[{"path": path, "contents": "evil"}])
    assert "files" in refused(local, workflow)
    assert not any(each.name == "evil" for each in local.folder.rglob("evil"))
    assert not Path("/evil").exists()


def test_a_spec_of_ten_megabytes_is_refused_in_words(local: Local):
    large = job(1, files=[{"path": str(number), "contents": "x" * 10**6} for number in range(10)])
    assert "larger than 8 MiB" in refused(local, large)


def test_a_few_lines_cannot_become_gigabytes(local: Local):
    assert "bytes or more" in refused(
        local, job(1, replicas=1_000, files=[{"path": "a", "contents": "x" * 10**6}])
    )
    loop = "{% for i in range(99999) %}{{host:" + "a" * 10**5 + "}}{% endfor %}"
    assert "gives more than 4,194,304 characters" in refused(local, job(1, environment={"A": loop}))


def test_folders_of_any_depth_are_removed_when_a_task_has_ended(local: Local):
    script = "import os\nfor _ in range(3000): os.mkdir('deep'); os.chdir('deep')"
    name = local.submit("p", 1, "NORMAL", script=f'cd /tmp; python3 -c "{script}"; cd /; echo made')
    local.over(name)
    # On a slow machine its disk is measured meanwhile, and it ends for folders as deep as these.
    assert local.status(name) == "COMPLETED" or "folders deeper" in local.message(name)
    (attempt,) = local._attempts(name)
    folder = local.folder / "data" / "local" / "attempts" / attempt.replace("/", "-") / "task"
    local.until(lambda: not (folder / "tmp").exists() and not (folder / "view").exists())


def test_files_of_the_machine_are_not_written(local: Local):
    own = job(1, name="files", files=[{"path": "/etc/evil", "contents": "evil"}])
    name = local.send("p", "NORMAL", own)
    local.over(name)
    assert "FAILED_START_ERROR" == local.status(name)
    assert "/etc/evil" in local.message(name)
    assert not Path("/etc/evil").exists()


def test_variables_cannot_be_smuggled_in(local: Local):
    assert "environment" in refused(local, job(1, environment={"A=B": "c"}))
    assert "environment" in refused(local, job(1, environment={"A\nB": "c"}))
    assert "environment" in refused(local, job(1, environment={"A": "b\0c"}))


def test_a_task_cannot_say_itself_which_gpus_it_has_or_who_it_is(local: Local):
    own = {"CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7", "BOUGH_ATTEMPT": "other/0", "BENIGN": "a\nb"}
    name = local.run("p", 2, "NORMAL", environment=own)
    (main,) = local.mains(name)
    assert 2 == len(main.gpus)
    assert "a\nb" == main.environment["BENIGN"]
    local.finish(name)


def test_nothing_of_the_server_is_seen(local: Local):
    data = local.folder / "data"
    seen = outcome(
        local,
        f"cat {data}/admin-token {data}/bough.db; ls -A {data} {local.folder}/data/local; "
        "env; cat /proc/[0-9]*/environ | tr '\\0' '\\n'",
    )
    assert not any(local.token in line for line in seen)
    assert not any(name in line.split() for line in seen for name in ("admin-token", "attempts"))


def test_nothing_outside_of_the_task_is_written(local: Local):
    places = ["/etc/evil", "/usr/evil", "/root/evil", "/var/evil", f"{local.folder}/evil"]
    seen = outcome(local, "".join(f"echo x > {each} && echo wrote {each}; " for each in places))
    assert not [line for line in seen if line.startswith("wrote ")]
    # What this account may not look into, its tasks do not write.
    assert not [each for each in places if os.access(each, os.F_OK)]


def test_a_tmp_of_its_own_is_left_behind_by_no_task(local: Local):
    first = outcome(local, "echo secret > /tmp/left; ls /tmp")
    assert (["left"], []) == (first, outcome(local, "ls -A /tmp"))
    assert not Path("/tmp/left").exists()  # noqa: S108 - looked at from outside


def test_links_in_results_lead_nowhere(local: Local):
    token, data = local.folder / "data" / "admin-token", local.folder / "data"
    url = "bough://p/hostile/links"
    first = task(
        "first",
        f"cd {{{{output}}}}; ln -s {token} token; ln -s {data} data; ln -s / root; "
        "ln -s ../../.. up; mkfifo pipe; echo fine > file; ln -s file alias",
        outputs=[{"url": url}],
    )
    look = "for each in token data/admin-token up/admin-token; do cat {{input:0}}/$each; done; "
    second = task("second", look + "cat {{input:0}}/file", inputs=[{"task": "first"}])
    third = task("third", look + "cat {{input:1}}/file", inputs=[{"task": "second"}, {"url": url}])
    workflow = {"name": "links", "resources": resources(1), "tasks": [first, second, third]}
    name = local.send("p", "NORMAL", workflow)
    local.over(name)
    lines = local.log(name)
    assert "[second] fine" in lines
    assert "[third] fine" in lines
    assert not [line for line in lines if local.token in line]


def test_links_in_results_are_not_written_through(local: Local):
    outside = local.folder / "outside"
    outside.mkdir()
    (outside / "kept").write_text("as it was")
    url = "bough://p/hostile/through"
    links = f"cd {{{{output}}}}; ln -s {outside} place; ln -s {outside}/kept kept"
    files = (
        "cd {{output}}; mkdir place; "
        "echo evil > place/kept; echo evil > place/new; echo evil > kept"
    )
    for script in (links, files):
        name = local.submit("p", 1, "NORMAL", script=script, outputs=[{"url": url}])
        local.over(name)
    assert ["kept"] == [each.name for each in outside.iterdir()]
    assert "as it was" == (outside / "kept").read_text()


def test_a_task_that_kills_all_it_can_ends_only_itself(local: Local):
    bystander = local.run("p", 1, "NORMAL")
    before = local.mains(bystander)
    script = "kill -9 $PPID; kill -9 -1; echo still there; sleep 1000"
    name = local.submit("p", 1, "NORMAL", script=script)
    local.until(lambda: local.status(name) != "PENDING")
    # Where it could not even kill itself it goes on, until it is ended.
    local.until(lambda: "FAILED" == local.status(name) or bool(local.log(name)))
    local.osmo("workflow", "cancel", name, "--force")
    local.over(name)
    assert before == local.mains(bystander)
    local.finish(bystander)
    assert [Attempt(0, "COMPLETED", 0)] == local.attempts(bystander)


def test_a_task_cannot_end_its_siblings(local: Local):
    murderer = task(
        "murderer",
        "sleep 1; for each in /proc/[0-9]*; do "
        "[ ${each#/proc/} = $$ ] || kill -9 ${each#/proc/}; done; echo did its worst; sleep 1000",
    )
    name = local.send("p", "NORMAL", gang([task("lead"), murderer]))
    local.until(lambda: "[murderer] did its worst" in local.log(name), lambda: local.shown(name))
    (lead,) = [each for each in local.mains(name) if each.environment["BOUGH_TASK"] == "lead"]
    local.tell(lead)
    local.over(name)
    assert "[lead] finished" in local.log(name)
    assert "COMPLETED" == local.status(name)


def test_children_that_are_left_behind_end_with_their_task(local: Local):
    name = local.submit(
        "p", 1, "NORMAL", script="setsid sleep 999 & nohup sleep 998 & (sleep 997 &) ; exit 0"
    )
    local.over(name)
    assert "COMPLETED" == local.status(name)
    assert [] == local.processes(name)


def test_without_a_view_of_its_own_a_task_has_its_folder_and_says_so(tmp_path: Path):
    as_root = ("--task-user", "root") if os.geteuid() == 0 else ()
    with hosting(tmp_path, 2, "--not-private", *as_root) as found:
        plain = found.start()
        plain.pool("p", 2)
        outside = job(1, name="outside", files=[{"path": "/new/file", "contents": "x"}])
        inside = job(
            1, name="inside", script="cat file", files=[{"path": "file", "contents": "mine\n"}]
        )
        names = [plain.send("p", "NORMAL", each) for each in (outside, inside)]
        plain.over(*names)
        assert ["FAILED_START_ERROR", "COMPLETED"] == plain.statuses(*names)
        assert "absolute path" in plain.message(names[0])
        assert ["[main] mine"] == plain.log(names[1])
        assert not Path("/new").exists()


def test_a_task_can_neither_ask_the_server_nor_take_its_place(tmp_path: Path):
    with hosting(tmp_path, 2) as found:
        local = found.start()
        local.pool("p", 2)
        script = TAKE_THE_PLACE.format(port=local.address.rpartition(":")[2])
        name = local.submit("p", 1, "NORMAL", script=script)
        # It is refused, and listens in the network of its group.
        local.until(lambda: len(local.log(name)) == 2, lambda: local.log(name))
        for _ in range(2):
            found.stop(signal.SIGKILL)
            again = found.start()
            assert local.address == again.address
            again.done("pool", "list")
        assert ["[main] asked: 111", "[main] listens"] == again.log(name)
