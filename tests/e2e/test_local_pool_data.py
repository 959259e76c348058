"""Data that lives with a pool: by commands over HTTP, by tasks, and only for those who may."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bough.client.data import DataAddress
from bough.client.uploads import Upload, UploadProgress, find_files
from bough.errors import BoughError, Invalid
from tests.e2e.local import Local, hosting, serving_locally, task
from tests.e2e.served import PATIENCE_S, PROGRAM

#: More than one request sends.
LARGE = 9 << 20


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    with serving_locally(tmp_path_factory.mktemp("pool-data"), 2) as local:
        local.pool("p", 2)
        local.pool("q", 0)
        local.client.users.create("ann", roles=["osmo-p-user"])
        local.client.users.create("eve", roles=["osmo-q-user"])
        yield local


def token(host: Local, user: str) -> str:
    name = f"{user}-{os.urandom(4).hex()}"
    return host.client.tokens.create(name, expires_at="2090-01-01", user=user)


def bough(
    host: Local, *arguments: str, user: str | None = None, folder: Path | None = None
) -> tuple[int, str, str]:
    environment = dict(host.environment)
    if user is not None:
        environment["BOUGH_TOKEN"] = token(host, user)
    ended = subprocess.run(
        [PROGRAM, *arguments],
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return ended.returncode, ended.stdout, ended.stderr


def done(host: Local, *arguments: str, **more: Any) -> Any:
    code, output, errors = bough(host, *arguments, "-t", "json", **more)
    assert 0 == code, errors
    return json.loads(output)


def paths(host: Local, url: str) -> list[str]:
    return [each["path"] for each in done(host, "data", "list", url)["files"]]


def tree(folder: Path) -> dict[str, bytes]:
    found = (each for each in folder.rglob("*") if each.is_file())
    return {str(each.relative_to(folder)): each.read_bytes() for each in found}


def project(folder: Path) -> Path:
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "one").write_text("one")
    (folder / "deep" / "er" / "gerät ü").write_bytes(b"\0\xff" * 10)
    (folder / "deep" / "large").write_bytes(os.urandom(LARGE))
    (folder / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("/etc/passwd")
    return folder


def test_a_folder_goes_up_is_listed_comes_back_and_is_deleted(host: Local, tmp_path: Path):
    folder = project(tmp_path / "here")
    sent = done(host, "data", "upload", str(folder), "bough://p/first", user="ann")
    assert (4, 1) == (sent["files"], sent["left_out"])
    assert sent["bytes"] == sent["sent_bytes"]

    expected = {name: content for name, content in tree(folder).items() if name != "link"}
    listed = done(host, "data", "list", "bough://p/first")
    assert {f"first/{name}": len(each) for name, each in expected.items()} == {
        each["path"]: each["size_bytes"] for each in listed["files"]
    }
    assert {"ann"} == {each["owner"] for each in listed["files"]}
    assert LARGE < listed["used_bytes"] < listed["quota_bytes"]
    back = tmp_path / "back"
    done(host, "data", "download", "bough://p/first", "-o", str(back))
    assert expected == tree(back)

    again = done(host, "data", "upload", str(folder), "bough://p/first")
    assert (4, 0) == (again["files"], again["sent_bytes"])
    (folder / "one").write_text("changed")
    assert 7 == done(host, "data", "upload", str(folder), "bough://p/first")["sent_bytes"]
    done(host, "data", "download", "bough://p/first/one", "-o", str(tmp_path / "one"))
    assert {"one": b"changed"} == tree(tmp_path / "one")

    assert 3 == bough(host, "data", "delete", "bough://p/first")[0]
    assert 4 == len(paths(host, "bough://p/first"))
    assert {"files": 4} == done(host, "data", "delete", "-f", "bough://p/first")
    empty = done(host, "data", "list", "bough://p/first")
    assert ([], True) == (empty["files"], empty["used_bytes"] < LARGE)
    code, _, errors = bough(host, "data", "download", "bough://p/first", "-o", str(back))
    assert (2, True) == (code, "bough://p/first does not exist" in errors)


def test_tasks_read_and_write_the_data_of_their_pool(host: Local, tmp_path: Path):
    folder = project(tmp_path / "here")
    done(host, "data", "upload", str(folder), "bough://p/in")
    script = (
        "cat {{input:0}}/one; {{input:0}}/run.sh; cmp {{input:0}}/deep/large {{input:0}}/deep/large"
        " && cp -r {{input:0}}/deep {{output}}/; ln -s /etc/passwd {{output}}/link;"
        " touch {{input:0}}/new || echo closed"
    )
    one = task("one", script, inputs=[{"url": "bough://p/in"}], outputs=[{"url": "bough://p/out"}])
    two = task("two", "ls {{input:0}}", inputs=[{"url": "bough://p/out/deep"}, {"task": "one"}])
    name = host.send("p", "NORMAL", {"name": "both", "tasks": [one, two]})
    host.over(name)

    assert "COMPLETED" == host.status(name), host.shown(name)
    said = "\n".join(host.log(name))
    assert all(each in said for each in ("one", "ran", "closed", "er\n", "large")), said
    assert ["out/deep/er/gerät ü", "out/deep/large"] == paths(host, "bough://p/out")
    back = tmp_path / "back"
    done(host, "data", "download", "bough://p/out/deep/large", "-o", str(back))
    assert {"large": (folder / "deep" / "large").read_bytes()} == tree(back)


def test_what_a_task_reads_stays_as_it_was_when_it_started(host: Local, tmp_path: Path):
    (tmp_path / "x").write_text("before")
    done(host, "data", "upload", str(tmp_path / "x"), "bough://p/stay/x")
    script = (
        "exec 2>/dev/null; trap 'cat {{input:0}}/x; exit 0' USR1; cat {{input:0}}/x; echo;"
        " while :; do sleep 1000 & wait $!; done"
    )
    reader = task("main", script, inputs=[{"url": "bough://p/stay"}])
    name = host.send("p", "NORMAL", {"name": "stay", "tasks": [reader]})
    host.until(lambda: ["[main] before"] == host.log(name))
    (tmp_path / "x").write_text("after")
    done(host, "data", "upload", str(tmp_path / "x"), "bough://p/stay/x")
    host.finish(name)

    assert ["[main] before", "[main] before"] == host.log(name)


def test_a_full_pool_is_a_clear_error_for_uploads_and_tasks(host: Local, tmp_path: Path):
    host.done("pool", "create", "small", "--quota", "0", "--data-quota", "1Mi")
    (tmp_path / "large").write_bytes(os.urandom(2 << 20))
    code, _, errors = bough(host, "data", "upload", str(tmp_path / "large"), "bough://small/x")
    assert 2 == code
    assert "The data of pool small is full: 0 bytes of 1.0 MiB are used, and 2.0 MiB more" in errors
    assert "--data-quota" in errors

    script = "head -c 3000000 /dev/urandom > {{output}}/large; echo small > {{output}}/a"
    writer = task("main", script, outputs=[{"url": "bough://small/out"}])
    name = host.send("small", "NORMAL", {"name": "full", "tasks": [writer]})
    host.over(name)
    assert "FAILED" == host.status(name).partition("_")[0]
    said = str(host.workflow(name))
    assert "bough://small/out could not be written: The data of pool small is full" in said
    # All of it or nothing, and what was copied before it was full is gone.
    assert [] == paths(host, "bough://small/")
    assert 0 == host.client.data.usage("small").used_bytes


def test_a_user_of_another_pool_neither_reads_nor_writes(host: Local, tmp_path: Path):
    (tmp_path / "x").write_text("x")
    done(host, "data", "upload", str(tmp_path / "x"), "bough://p/secret/x")
    for arguments in (
        ("list", "bough://p/"),
        ("download", "bough://p/secret", "-o", str(tmp_path / "back")),
        ("upload", str(tmp_path / "x"), "bough://p/secret/x"),
        ("delete", "-f", "bough://p/secret"),
    ):
        code, _, errors = bough(host, "data", *arguments, user="eve")
        assert (2, "access denied") == (code, errors.splitlines()[0].removeprefix("error: "))
    for field in ("inputs", "outputs"):
        spec = {
            "name": "spy",
            "tasks": [task("main", "true", **{field: [{"url": "bough://p/secret"}]})],
        }
        code, _, errors = bough(
            host, "workflow", "submit", "--pool", "q", host.write(spec), user="eve"
        )
        verb = "read" if field == "inputs" else "write"
        assert 0 != code
        assert f"eve may not {verb} the data of pool p" in errors
    assert ["secret/x"] == paths(host, "bough://p/secret")


def test_a_task_does_not_start_once_its_user_lost_the_right(host: Local):
    holder = host.run("p", 2, "NORMAL")
    reader = task("main", "true", inputs=[{"url": "bough://p/x"}])
    spec = {
        "name": "late",
        "resources": {"default": {"gpu": 2}},
        "tasks": [reader],
    }
    code, output, errors = bough(
        host, "workflow", "submit", "-t", "json", "--pool", "p", host.write(spec), user="ann"
    )
    assert 0 == code, errors
    name = json.loads(output)["name"]
    host.done("user", "update", "ann", "--remove-roles", "osmo-p-user")
    try:
        host.finish(holder)
        host.over(name)
        said = str(host.workflow(name))
        assert "ann may not use the data of pool p any more" in said
    finally:
        host.done("user", "update", "ann", "--add-roles", "osmo-p-user")


@pytest.mark.parametrize(
    "path",
    ["../x", "a/../../x", "/etc", "a//b", ".", "x" * 300, "a/" * 600 + "b", "a\tb", "a\u202eb"],
)
def test_paths_that_lead_elsewhere_are_refused(host: Local, path: str):
    data = host.client.data
    address = DataAddress("p", path)
    for ask in (
        lambda: data.page(address),
        lambda: data.part(address, offset=0),
        lambda: data.delete(address),
    ):
        with pytest.raises(Invalid, match="is not possible"):
            ask()
    spec = {"name": "odd", "tasks": [task("main", "true", outputs=[{"url": f"bough://p/{path}"}])]}
    with pytest.raises(BoughError):
        host.client.workflows.submit("p", json.dumps({"workflow": spec}) + "\n")


class _Cut(Exception):
    """Ends an upload in the middle."""


def test_an_upload_that_was_cut_off_goes_on_and_shows_nothing_before(host: Local, tmp_path: Path):
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "large").write_bytes(os.urandom(3 * LARGE))
    (folder / "small").write_text("small")
    address = DataAddress("p", "cut")

    def cut(progress: UploadProgress) -> None:
        if progress.sent_bytes:
            raise _Cut

    with pytest.raises(_Cut):
        Upload(host.client.data, find_files(folder), tell=cut).send(address)
    assert [] == paths(host, "bough://p/cut")
    sent = Upload(host.client.data, find_files(folder)).send(address)
    assert 0 < sent.sent_bytes < 3 * LARGE
    done(host, "data", "download", "bough://p/cut", "-o", str(tmp_path / "back"))
    assert tree(folder) == tree(tmp_path / "back")


def test_a_file_that_changes_while_it_is_uploaded_is_named(host: Local, tmp_path: Path):
    for name in ("first", "second"):
        (tmp_path / name).write_bytes(os.urandom(1 << 10))

    def change(progress: UploadProgress) -> None:
        if progress.read == 2 and not progress.of_bytes:
            (tmp_path / "second").write_bytes(os.urandom(1 << 10))

    with pytest.raises(Invalid, match="/second was changed while it was uploaded"):
        Upload(host.client.data, find_files(tmp_path), tell=change).send(DataAddress("p", "new"))


def test_the_data_of_a_server_that_runs_is_left_out_with_a_warning(tmp_path: Path):
    (tmp_path / "a").write_text("a")
    with serving_locally(tmp_path, 1) as local:
        local.pool("p", 1)
        code, _, errors = bough(local, "data", "upload", str(tmp_path), "bough://p/x")
        found = paths(local, "bough://p/x")
    data = next(tmp_path.rglob("server-key")).parent
    assert (0, True) == (code, "x/a" in found), errors
    assert f"warning: {data} is left out: it is the data folder of a Bough server." in errors
    assert not [each for each in found if each.endswith(("-key", "-token", ".db"))]


def test_what_was_answered_survives_a_killed_server(tmp_path: Path):
    folder = project(tmp_path / "here")
    (tmp_path / "server").mkdir()
    with hosting(tmp_path / "server", 1) as process:
        host = process.start()
        host.pool("p", 1)
        done(host, "data", "upload", str(folder), "bough://p/kept")

        def kill(progress: UploadProgress) -> None:
            if progress.sent_bytes:
                process.stop(signal.SIGKILL)

        (folder / "deep" / "large").write_bytes(os.urandom(3 * LARGE))
        halves = Upload(host.client.data, find_files(folder), tell=kill)
        with pytest.raises(BoughError):
            halves.send(DataAddress("p", "half"))
        host = process.start()
        assert [] == paths(host, "bough://p/half")
        assert 4 == len(paths(host, "bough://p/kept"))
        sent = Upload(host.client.data, find_files(folder)).send(DataAddress("p", "half"))
        assert sent.sent_bytes < 3 * LARGE
        done(host, "data", "download", "bough://p/half", "-o", str(tmp_path / "back"))
        expected = {name: each for name, each in tree(folder).items() if name != "link"}
        assert expected == tree(tmp_path / "back")
        host.clear()


def test_a_project_goes_with_a_submission_and_the_next_time_only_what_changed(
    host: Local, tmp_path: Path
):
    folder = project(tmp_path / "here")
    (folder / ".gitignore").write_text("*.log\n/data/\n")
    (folder / "x.log").write_text("ignored")
    (folder / "data").mkdir()
    (folder / "data" / "large").write_bytes(bytes(1_000))
    script = "cat one; ./run.sh; ls -A; echo new > one && echo writable; id -un"
    spec = {"name": "project", "tasks": [task("main", script), task("second", "cat one")]}
    arguments = ("workflow", "submit", "--pool", "p", "--upload", str(folder))

    code, output, errors = bough(host, *arguments, host.write(spec), "-t", "json", user="ann")
    assert 0 == code, errors
    name = json.loads(output)["name"]
    host.over(name)
    assert "COMPLETED" == host.status(name), host.shown(name)
    said = [each.removeprefix("[main] ") for each in host.log(name) if "[main]" in each]
    assert ["oneran", ".gitignore", "deep", "one", "run.sh", "writable"] == said[:6]
    assert ["[second] one"] == [each for each in host.log(name) if "[second]" in each]
    (url,) = {
        each.rpartition("/")[0] for each in paths(host, "bough://p/uploads") if "/one" in each
    }
    assert 32 == len(url.rpartition("/")[2])

    # The same folder again: nothing is sent, and it is there once.
    code, _, errors = bough(host, *arguments, host.write(spec))
    assert (0, True) == (code, "0 bytes were sent" in errors)
    (folder / "one").write_text("two")
    code, output, errors = bough(host, *arguments, host.write(spec))
    assert (0, True) == (code, "3 bytes were sent" in errors), errors

    code, output, errors = bough(
        host, "run", "--pool", "p", "--upload", str(folder), "--", "sh", "-c", "cat one; exit 7"
    )
    assert (7, "two") == (code, output.strip()), errors

    # Once more by its ID, with the project it had.
    again = host.json("workflow", "submit", name, "--pool", "p")["name"]
    host.over(again)
    assert ["[second] one"] == [each for each in host.log(again) if "[second]" in each]


def test_an_input_from_a_workflow_that_still_runs_waits_for_it(host: Local):
    holder = host.run("p", 1, "NORMAL", name="holder")
    reader = task("main", "cat {{input:0}}/x", inputs=[{"task": f"{holder}:main"}])
    name = host.send("p", "NORMAL", {"name": "reader", "tasks": [reader]})
    said = bough(host, "workflow", "query", name)[1]
    assert "PENDING" == host.status(name), said
    assert holder in bough(host, "workflow", "why", name)[1]
    host.finish(holder)
    host.over(name)
    # It was started after the end; what it reads is what was left.
    assert "COMPLETED" == host.status(holder)
    assert "FAILED" == host.status(name)
    assert ["[main] cat: /osmo/data/input/0/x: No such file or directory"] == host.log(name)
