"""Tasks whose URLs name a real store: with the submitter's own credentials, and only with them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bough.object_stores.s3_multipart import PART_BYTES
from tests.e2e.local import Local, hosting, job
from tests.e2e.served import PATIENCE_S, PROGRAM
from tests.object_stores.proxy import Proxy
from tests.object_stores.servers import KEY, KEY_ID, S3, payload, s3_server

#: Sent in parts.
LARGE = 5 * PART_BYTES


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="module")
def proxy(s3: S3) -> Iterator[Proxy]:
    with Proxy(s3.url) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def host(s3: S3, proxy: Proxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    allowed = ("--store-endpoint", s3.url, "--store-endpoint", proxy.url)
    with hosting(tmp_path_factory.mktemp("host"), 2, *allowed) as hosted:
        local = hosted.start()
        local.pool("p", 2)
        yield local


def use(host: Local, store: str, bucket: str, **parts: str) -> None:
    """Store a credential for a bucket."""
    given = payload(f"s3://{bucket}", store, **parts)
    host.client.credentials.set(f"key-of-{bucket}", "DATA", given)


def submit(host: Local, script: str, **fields: Any) -> str:
    return host.submit("p", 0, "NORMAL", script=script, **fields)


def refused(host: Local, *, token: str | None = None, **fields: Any) -> str:
    own = {} if token is None else {"BOUGH_TOKEN": token}
    ended = subprocess.run(
        [PROGRAM, "workflow", "submit", "--pool", "p", host.write(job(0, script="true", **fields))],
        env=host.environment | own,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert 2 == ended.returncode, ended.stderr
    return ended.stderr


def test_without_a_credential_a_submission_is_refused_and_says_what_to_do(host: Local):
    message = refused(host, inputs=[{"url": "s3://nothing/data"}])
    assert (
        "Task main: inputs[0].url: s3://nothing/data needs a credential, and admin has none of "
        "type DATA for s3://nothing; set one: bough credential set NAME --type DATA --payload "
        "endpoint=s3://nothing --payload access_key_id=ID --payload-file access_key=FILE"
    ) in " ".join(message.split())
    for field in ("outputs", "checkpoint"):
        entry = {"url": "gs://nothing/data"}
        if field == "checkpoint":
            entry |= {"path": "kept", "frequency": "1m"}
        fields: dict[str, Any] = {field: [entry]}
        message = refused(host, **fields)
        assert f"{field}[0].url: gs://nothing/data needs a credential" in message


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("swift://a/b", "tasks can use s3://, gs://, azure://, bough://, file://"),
        ("azure://account", "it names no bucket; write azure://ACCOUNT/CONTAINER/path"),
        ("s3://{{workflow_id}}/x", "its bucket cannot be a placeholder"),
        ("s3://a@b/x", "'a@b' cannot be the name of a bucket"),
    ],
)
def test_what_no_store_has_is_refused(host: Local, url: str, expected: str):
    message = refused(host, outputs=[{"url": url}])
    assert f"Task main: outputs[0].url: '{url}' is not possible: " in message
    assert expected in message


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"override_url": "http://127.0.0.1:1"}, "an administrator has not allowed"),
        ({"override_url": "here"}, "has an override_url that is not a URL like https://host:port"),
        ({"access_key": ""}, "has no access_key"),
        ({"acess_key": "x"}, "has a part 'acess_key'; its parts can be: endpoint, access_key_id,"),
        ({"addressing_style": "x"}, "has an addressing_style that is none of path, virtual, auto"),
    ],
)
def test_a_credential_that_cannot_be_right_is_named(
    host: Local, s3: S3, parts: dict[str, str], expected: str
):
    use(host, s3.url, "faulty", **parts)
    message = refused(host, inputs=[{"url": "s3://faulty/x"}])
    assert "s3://faulty/x: credential key-of-faulty of admin has" in message.replace("says", "has")
    assert expected in message
    assert KEY not in message


def test_a_task_reads_and_writes_its_users_store(host: Local, s3: S3):
    bucket = s3.bucket("daily")
    (bucket / "in" / "deep").mkdir(parents=True)
    (bucket / "in" / "deep" / "one.txt").write_text("one")
    (bucket / "in" / "skipped.bin").write_text("skipped")
    use(host, s3.url, "daily")
    script = """\
cd {{input:0}} && find . -type f | sort
cp deep/one.txt {{output}}/copy && mkdir {{output}}/d && echo two > {{output}}/d/two
mkdir ~/model && echo three > ~/model/three
env; ls {{input:1}} | wc -l
"""
    name = submit(
        host,
        script,
        inputs=[{"url": "s3://daily/in", "regex": r".*[.]txt"}, {"url": "s3://daily/not/there"}],
        outputs=[{"url": "s3://daily/out/{{workflow_id}}"}],
        checkpoint=[{"path": "model", "url": "s3://daily/kept", "frequency": "1h"}],
    )
    host.over(name)
    assert "COMPLETED" == host.status(name), host.shown(name)
    log = host.log(name)
    assert ["[main] ./deep/one.txt", "[main] 0"] == [log[0], log[-1]]
    written = {
        str(each.relative_to(bucket)): each.read_text()
        for each in bucket.rglob("*")
        if each.is_file() and "in" != each.relative_to(bucket).parts[0]
    }
    assert {
        f"out/{name}/copy": "one",
        f"out/{name}/d/two": "two\n",
        "kept/model/three": "three\n",
    } == written
    assert KEY not in "\n".join(log)
    assert_unseen(host)


def test_a_store_that_does_not_open_is_told_without_the_secret(host: Local, s3: S3):
    s3.bucket("shut")
    use(host, s3.url, "shut", access_key="not-the-SECRET")
    name = submit(host, "true", inputs=[{"url": "s3://shut/x"}])
    host.over(name)
    assert (
        "Task main could not be started: s3://shut/x could not be listed: the store does not know "
        "the key of the credential (SignatureDoesNotMatch)"
    ) in host.message(name)
    use(host, s3.url, "gone")
    written = submit(host, "echo x > {{output}}/x", outputs=[{"url": "s3://gone/x"}])
    host.over(written)
    assert "FAILED" in host.status(written)
    assert "s3://gone/x/x could not be written: there is no such bucket" in host.message(written)
    assert_unseen(host, "not-the-SECRET")


def test_a_credential_must_still_be_there_when_the_task_starts(host: Local, s3: S3):
    s3.bucket("later")
    use(host, s3.url, "later")
    holds = host.run("p", 2, "NORMAL")
    name = host.submit("p", 2, "NORMAL", script="true", outputs=[{"url": "s3://later/x"}])
    host.left_waiting(name)
    host.client.credentials.delete("key-of-later")
    host.finish(holds)
    host.over(name)
    assert "outputs[0].url: s3://later/x needs a credential" in host.message(name)


@pytest.mark.parametrize("way", ["in", "out"])
def test_a_killed_process_is_followed_by_one_that_goes_on(
    host: Local, s3: S3, proxy: Proxy, way: str
):
    bucket = s3.bucket(f"killed-{way}")
    use(host, proxy.url, f"killed-{way}")
    url = f"s3://killed-{way}/{way}"
    if way == "in":
        (bucket / "in").mkdir()
        (bucket / "in" / "large").write_bytes(os.urandom(LARGE))
        fields: dict[str, Any] = {"inputs": [{"url": url}], "outputs": [{"url": f"{url}/copy"}]}
        script = "cp {{input:0}}/large {{output}}/large"
    else:
        fields = {"outputs": [{"url": url}]}
        script = f"head -c {LARGE} /dev/urandom > {{{{output}}}}/large"
    # Four parts are sent at once. Within the fifth, the store has answered for at least one.
    proxy.hold_at(LARGE * 4 // 5 if way == "in" else LARGE - PART_BYTES // 2)
    name = submit(host, script, **fields)
    host.until(proxy.holding.is_set, lambda: host.shown(name))
    (helper,) = proxy.clients()
    os.kill(helper, signal.SIGKILL)
    proxy.go_on()
    host.over(name)
    assert "COMPLETED" == host.status(name), host.shown(name)
    if way == "in":
        read, written = (bucket / "in" / each for each in ("large", "copy/large"))
        assert read.read_bytes() == written.read_bytes()
        assert proxy.down < 2 * LARGE - PART_BYTES
    else:
        assert LARGE == (bucket / "out" / "large").stat().st_size
        # Without what the store had, it would be half a part less than twice everything, or more.
        assert proxy.up < 2 * LARGE - PART_BYTES * 3 // 4
        kept = host.folder / "back"
        host.done("workflow", "download", name, "-o", str(kept))
        (result,) = kept.rglob("large")
        assert result.read_bytes() == (bucket / "out" / "large").read_bytes()


def test_a_user_has_nothing_of_anothers_credential(host: Local, s3: S3):
    s3.bucket("own")
    use(host, s3.url, "own")
    host.client.users.create("eve", roles=["osmo-p-user"])
    token = host.client.tokens.create("eve-own", expires_at="2090-01-01", user="eve")
    message = refused(host, token=token, inputs=[{"url": "s3://own/x"}])
    assert "s3://own/x needs a credential, and eve has none of type DATA" in message


def data(s3: S3, *arguments: str, **variables: str) -> tuple[int, Any]:
    """Run `bough data` as a user does who has keys and no server."""
    keys = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": KEY, "AWS_ENDPOINT_URL": s3.url}
    home = {**os.environ, "HOME": str(s3.folder), "XDG_CACHE_HOME": str(s3.folder / "cache")}
    ended = subprocess.run(
        [PROGRAM, "data", *arguments, "-t", "json"],
        env=home | keys | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert KEY not in ended.stdout + ended.stderr
    return ended.returncode, json.loads(ended.stdout or ended.stderr)


def test_commands_use_a_store_with_the_keys_of_the_environment(s3: S3, tmp_path: Path):
    bucket = s3.bucket("commands")
    here = tmp_path / "here"
    (here / "deep").mkdir(parents=True)
    (here / "one").write_text("one")
    (here / "deep" / "two").write_bytes(os.urandom(LARGE))
    (here / "link").symlink_to("one")
    code, sent = data(s3, "upload", str(here), "s3://commands/a")
    assert (0, 2, LARGE + 3, 1) == (code, sent["files"], sent["sent_bytes"], sent["left_out"])
    assert 0 == data(s3, "upload", str(here), "s3://commands/a")[1]["sent_bytes"]
    assert 0 == data(s3, "upload", str(here / "one"), "s3://commands/a/three")[0]
    assert "one" == (bucket / "a" / "three").read_text()

    code, listed = data(s3, "list", "s3://commands/a")
    sizes = {each["path"]: each["size_bytes"] for each in listed["files"]}
    assert (0, {"a/one": 3, "a/deep/two": LARGE, "a/three": 3}) == (code, sizes)
    assert data(s3, "list", "-c", "1", "s3://commands")[1]["more_entries"]

    back = tmp_path / "back"
    assert 3 == data(s3, "download", "s3://commands/a", "-o", str(back))[1]["files"]
    assert (here / "deep" / "two").read_bytes() == (back / "deep" / "two").read_bytes()
    assert (0, 3) == _counts(data(s3, "download", "s3://commands/a", "-o", str(back)))
    (back / "one").write_text("mine")
    code, error = data(s3, "download", "s3://commands/a", "-o", str(back))
    assert (2, True) == (code, "is there and is different" in error["message"])
    assert "mine" == (back / "one").read_text()
    more = ("--overwrite", "-o", str(back))
    assert (1, 2) == _counts(data(s3, "download", "s3://commands/a", *more))

    assert {"files": 1} == data(s3, "delete", "-f", "s3://commands/a/deep")[1]
    assert ["a/one", "a/three"] == sorted(
        each["path"] for each in data(s3, "list", "s3://commands")[1]["files"]
    )
    for command in (("download",), ("delete", "-f")):
        code, error = data(s3, *command, "s3://commands/nothing")
        assert (2, "s3://commands/nothing does not exist.") == (code, error["message"])


def test_commands_say_what_is_wrong_with_a_store(s3: S3):
    code, error = data(s3, "list", "s3://")
    assert (2, True) == (code, "names no bucket" in error["message"])
    code, error = data(s3, "list", "s3://nosuch/x", AWS_SECRET_ACCESS_KEY="")
    assert (2, True) == (code, "has no access_key; set AWS_ACCESS_KEY_ID" in error["message"])
    code, error = data(s3, "list", "s3://nosuch/x")
    assert 0 != code
    assert "s3://nosuch/x could not be listed: there is no such bucket" in error["message"]


def _counts(done: tuple[int, Any]) -> tuple[int, int]:
    assert 0 == done[0]
    return done[1]["files"], done[1]["unchanged"]


def assert_unseen(host: Local, secret: str = KEY) -> None:
    """The secret is in no file that the server keeps, nor in what it told."""
    text = secret.encode()
    files = [each for each in Path(host.folder).rglob("*") if each.is_file()]
    assert [] == [str(each) for each in files if text in each.read_bytes()]
