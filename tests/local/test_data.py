"""Data of tasks: where it is kept, and how it is copied."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.backends.local.data import copying
from bough.backends.local.data.copying import UNFINISHED, Copied, copy_files
from bough.backends.local.data.file_name_patterns import matching
from bough.backends.local.data.locations import results_folder, safe_name, url_folder
from bough.backends.local.data.paths import split_path
from bough.backends.local.errors import CopyFailed, Unstartable
from bough.backends.local.options import LocalOptions
from bough.backends.local.task_command import Copy, CopyLimits


def tree(folder: Path) -> dict[str, str]:
    """What is in a folder: the contents of files, and where links lead."""
    return {
        str(each.relative_to(folder)): f"-> {each.readlink()}"
        if each.is_symlink()
        else each.read_text()
        for each in sorted(folder.rglob("*"))
        if each.is_symlink() or each.is_file()
    }


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("s3://bucket/a/b", "s3/bucket/a/b"),
        ("S3://bucket//a/./b/", "s3/bucket/a/%2E/b"),
        ("gs://bucket/../../etc", "gs/bucket/%2E%2E/%2E%2E/etc"),
        ("swift://a.b/.hidden", "swift/a.b/%2Ehidden"),
        ("tos://b/a%2Fb", "tos/b/a%252Fb"),
        ("s3://b/\0\n", "s3/b/%00%0A"),
    ],
)
def test_a_url_stands_for_a_folder_of_the_backend(url, place, tmp_path):
    assert tmp_path.resolve() / "data" / place == url_folder(LocalOptions(tmp_path), url, "x")


@given(st.text(max_size=60), st.sampled_from(["s3://", "gs://b/", "a+b://", ""]))
def test_no_url_leads_out_of_the_folder_of_the_backend(text, start):
    options = LocalOptions(Path("/no/such/folder"))
    try:
        place = url_folder(options, start + text, "inputs[0]")
    except Unstartable:
        return
    assert place.is_relative_to("/no/such/folder/data")
    assert (tuple(place.parts[1:]), None) == split_path(str(place))


@given(st.text(max_size=300), st.text(max_size=300))
def test_a_safe_name_is_one_name_and_of_one_text_only(one, other):
    name = safe_name(one)

    assert ((name,), None) == split_path(name)
    assert not name.startswith(".")
    assert (one == other) == (name == safe_name(other))


@pytest.mark.parametrize(
    "url", ["", "bucket/a", "s3:/a", "://a", "s3://", "s3:///", "s3://" + "x" * 3_000]
)
def test_what_is_no_url_is_refused(url, tmp_path):
    with pytest.raises(Unstartable, match=r"write .*://<bucket>/<path>"):
        url_folder(LocalOptions(tmp_path), url, "outputs[0]")


def test_a_path_of_the_machine_is_refused_unless_its_folder_is_allowed(tmp_path):
    allowed, other = tmp_path / "allowed", tmp_path / "other"
    for each in (allowed, other):
        each.mkdir()
    (allowed / "link").symlink_to(other)
    options = LocalOptions(tmp_path / "local", data_folders=(allowed,))

    assert (allowed / "a").resolve() == url_folder(options, f"file://{allowed}/a", "x")
    for path in (other, f"{allowed}/../other", f"{allowed}/link/a", "relative", ""):
        with pytest.raises(Unstartable):
            url_folder(options, f"file://{path}", "x")
    with pytest.raises(Unstartable, match="no folder is allowed for that"):
        url_folder(LocalOptions(tmp_path / "local"), f"file://{allowed}/a", "x")


def test_a_path_of_links_that_lead_to_each_other_is_no_crash(tmp_path):
    allowed = LocalOptions(tmp_path / "own", data_folders=(tmp_path / "shared",))
    write(tmp_path / "from", file="1")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "loop").symlink_to("loop")

    folder = url_folder(allowed, f"file://{tmp_path}/shared/loop/deeper", "outputs[0]")

    with pytest.raises(CopyFailed, match="no link is followed"):
        copy_files(Copy(str(tmp_path / "from"), str(folder)))


def test_results_have_a_folder_for_each_task(tmp_path):
    expected = tmp_path.resolve() / "results" / "flow-1" / "%2E%2E"

    assert expected == results_folder(LocalOptions(tmp_path), "flow-1", "..")


def test_files_are_copied_with_their_folders(tmp_path):
    source = write(tmp_path / "from", a="1", b__c="22", b__d__e="")
    (source / "a").chmod(0o4755)
    (source / "b" / "c").chmod(0o600)

    copied = copy_files(Copy(str(source), str(tmp_path / "to")))

    assert Copied(3, 3) == copied
    assert tree(source) == tree(tmp_path / "to")
    modes = [stat.S_IMODE((tmp_path / "to" / each).stat().st_mode) for each in ("a", "b/c", "b")]
    assert [0o755, 0o644, 0o755] == modes


def test_a_folder_keeps_its_name_where_that_is_told(tmp_path):
    source = write(tmp_path / "models", a="1")

    copy_files(Copy(str(source), str(tmp_path / "to"), named=True))

    assert {"models/a": "1"} == tree(tmp_path / "to")


def test_a_single_file_is_copied_under_its_name(tmp_path):
    write(tmp_path / "from", a="1", b="2")

    for named in (False, True):
        copy_files(Copy(str(tmp_path / "from" / "a"), str(tmp_path / "to"), named=named))

    assert {"a": "1"} == tree(tmp_path / "to")


def test_only_files_that_match_are_copied(tmp_path):
    source = write(tmp_path / "from", a="1", b__c="2")
    for name in ("x.json", "b/y.json", "b/json.txt"):
        (source / name).write_text(name)

    copy_files(Copy(str(source), str(tmp_path / "to"), r".*\.json$"))

    assert {"x.json": "x.json", "b/y.json": "b/y.json"} == tree(tmp_path / "to")


def test_a_regex_that_never_ends_is_ended():
    with pytest.raises(CopyFailed, match="takes too long on the names of the files"):
        matching("a*" * 30 + "$", ["a" * 200 + "b"], timeout_s=0.5)


@pytest.mark.parametrize("regex", ["(", "a" * 257, "(?P<x", "a{99999999999}", "a\nb", "(a+)+$"])
def test_a_regex_that_is_not_valid_is_an_error_that_names_it(regex, tmp_path):
    source = write(tmp_path / "from", a="1")

    with pytest.raises(CopyFailed, match="regex: "):
        copy_files(Copy(str(source), str(tmp_path / "to"), regex))


def test_what_has_not_changed_is_not_copied_again(tmp_path):
    source = write(tmp_path / "from", a="1", b="2")
    copy = Copy(str(source), str(tmp_path / "to"))
    copy_files(copy)
    write(source, b="3", c="4")
    os.utime(source / "b", ns=(1, 1))

    assert Copied(2, 2) == copy_files(copy)
    assert {"a": "1", "b": "3", "c": "4"} == tree(tmp_path / "to")


def test_a_file_that_changes_while_it_is_read_does_not_replace_its_older_copy(
    tmp_path, monkeypatch
):
    source = write(tmp_path / "from", a="old")
    copy = Copy(str(source), str(tmp_path / "to"))
    copy_files(copy)
    write(source, a="half written")
    real = os.sendfile

    def write_on(*arguments):
        with (source / "a").open("a") as file:
            file.write(", and more")
        return real(*arguments)

    monkeypatch.setattr(os, "sendfile", write_on)
    assert Copied(0, 0, ("a: it was being written",)) == copy_files(copy)
    assert {"a": "old"} == tree(tmp_path / "to")

    monkeypatch.undo()
    assert Copied(1, 22) == copy_files(copy)
    assert {"a": "half written, and more"} == tree(tmp_path / "to")


def test_links_are_never_followed_and_only_those_that_lead_down_are_kept(tmp_path):
    secret = write(tmp_path / "secret", key="geheim")
    source = write(tmp_path / "from", a="1", b__c="2")
    for name, leads in {
        "latest": "b/c",
        "out": "../secret/key",
        "absolute": str(secret / "key"),
        "folder": str(secret),
        "down_and_up": "b/../../secret",
        "nowhere": "not/there",
    }.items():
        (source / name).symlink_to(leads)

    copied = copy_files(Copy(str(source), str(tmp_path / "to")))

    assert {"a": "1", "b/c": "2", "latest": "-> b/c", "nowhere": "-> not/there"} == tree(
        tmp_path / "to"
    )
    assert 4 == len(copied.skipped)
    assert "absolute: it is a link that leads out of the folder" == copied.skipped[0]


def test_a_file_that_becomes_a_link_while_it_is_copied_is_not_followed(tmp_path, monkeypatch):
    secret = write(tmp_path / "secret", key="geheim")
    source = write(tmp_path / "from", a="1", b__c="2")

    def swap(regex: str | None, names: list[str]) -> list[int]:
        (source / "a").unlink()
        (source / "a").symlink_to(secret / "key")
        (source / "b").rename(source / "d")
        (source / "b").symlink_to(secret)
        return matching(regex, names)

    monkeypatch.setattr(copying, "matching", swap)
    assert Copied(0, 0, ("a: it has become a link",)) == copy_files(
        Copy(str(source), str(tmp_path / "to"))
    )
    assert {} == tree(tmp_path / "to")


def test_what_is_neither_file_nor_folder_is_left_out(tmp_path):
    source = write(tmp_path / "from", a="1")
    os.mkfifo(source / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(source / "socket"))

        copied = copy_files(Copy(str(source), str(tmp_path / "to")))

    assert {"a": "1"} == tree(tmp_path / "to")
    assert (
        "pipe: it is neither a file nor a folder",
        "socket: it is neither a file nor a folder",
    ) == copied.skipped


@pytest.mark.parametrize("kind", ["source", "above", "target", "below"])
def test_a_link_in_the_way_is_an_error(kind, tmp_path):
    secret = write(tmp_path / "secret", key="geheim")
    write(tmp_path / "from" / "a", b="1")
    source, target = tmp_path / "from" / "a", tmp_path / "to" / "c"
    if kind == "source":
        source = tmp_path / "from" / "link"
        source.symlink_to(secret)
    elif kind == "above":
        (tmp_path / "from" / "link").symlink_to(tmp_path)
        source = tmp_path / "from" / "link" / "secret"
    elif kind == "target":
        target.parent.mkdir()
        target.symlink_to(secret)
    else:
        write(tmp_path / "from" / "a", key__deep="evil")
        target.mkdir(parents=True)
        (target / "key").symlink_to(secret)

    with pytest.raises(CopyFailed):
        copy_files(Copy(str(source), str(target), optional=True))

    assert {"key": "geheim"} == tree(secret)


def test_more_files_than_allowed_are_not_copied(tmp_path):
    source = write(tmp_path / "from", a="1", b="2", c="3")

    with pytest.raises(CopyFailed, match="has more than 2 files and folders, which is the most"):
        copy_files(Copy(str(source), str(tmp_path / "to"), bounds=CopyLimits(files=2)))


def test_folders_count_too_and_so_does_what_is_left_out(tmp_path):
    source = write(tmp_path / "from", a="1")
    (source / "empty").mkdir()
    os.mkfifo(source / "pipe")

    with pytest.raises(CopyFailed, match="has more than 2 files and folders"):
        copy_files(Copy(str(source), str(tmp_path / "to"), bounds=CopyLimits(files=2)))


def test_a_hole_in_a_file_takes_no_room_in_its_copy(tmp_path):
    source = tmp_path / "from" / "sparse"
    source.parent.mkdir()
    with source.open("wb") as file:
        file.truncate(2**36)
        for place in (2**20, 2**35, 2**36 - 5):
            file.seek(place)
            file.write(b"datum")

    copied = copy_files(Copy(str(source), str(tmp_path / "to")))

    target = tmp_path / "to" / "sparse"
    assert (2**36, 2**36) == (copied.bytes, target.stat().st_size)
    assert target.stat().st_blocks * 512 < 2**20
    with target.open("rb") as file:
        for place in (2**20, 2**35, 2**36 - 5):
            file.seek(place)
            assert b"datum" == file.read(5)


def test_an_error_shows_no_control_characters_of_a_name(tmp_path):
    source = tmp_path / "from"
    (source / "a\x1b[31m\nb").mkdir(parents=True)
    (source / "a\x1b[31m\nb" / "file").write_text("")
    write(tmp_path / "to", **{"a\x1b[31m\nb": "in the way"})

    with pytest.raises(CopyFailed, match="a file or a symbolic link is in the way") as caught:
        copy_files(Copy(str(source), str(tmp_path / "to")))

    assert caught.value.message.isprintable()


def test_more_bytes_than_allowed_are_not_copied(tmp_path):
    source = write(tmp_path / "from", a="123", b="456")

    with pytest.raises(CopyFailed, match="has more than 5 bytes, which is the most"):
        copy_files(Copy(str(source), str(tmp_path / "to"), bounds=CopyLimits(bytes=5)))

    assert {"a": "123"} == tree(tmp_path / "to")


def test_folders_without_end_are_not_followed(tmp_path):
    deep = tmp_path / "from"
    for _ in range(120):
        deep /= "d"
    deep.mkdir(parents=True)

    with pytest.raises(CopyFailed, match="has folders deeper than 100"):
        copy_files(Copy(str(tmp_path / "from"), str(tmp_path / "to")))


def test_a_source_that_is_not_there_is_an_error_unless_it_is_optional(tmp_path):
    copy = Copy(str(tmp_path / "from" / "x"), str(tmp_path / "to"))

    with pytest.raises(CopyFailed, match="No such file or directory"):
        copy_files(copy)
    optional = Copy(copy.source, copy.target, optional=True)
    assert Copied() == copy_files(optional)


@pytest.mark.parametrize("nameless", [True, False])
def test_nothing_is_left_of_a_file_whose_copy_is_broken_off(nameless, tmp_path, monkeypatch):
    source, target = write(tmp_path / "from", a="1"), write(tmp_path / "to", a="old")
    seen: list[str] = []

    def stop(*_: object) -> int:
        seen.extend(sorted(each.name for each in target.iterdir()))
        raise KeyboardInterrupt

    monkeypatch.setattr(copying, "_copy_bytes", stop)
    if not nameless:
        monkeypatch.setattr(copying, "_NAMELESS", os.O_WRONLY | os.O_DIRECTORY)
    with pytest.raises(KeyboardInterrupt):
        copy_files(Copy(str(source), str(target)))

    # Who is killed cannot tidy up; so while it is written there must be nothing to be seen.
    assert [UNFINISHED, "a"][nameless:] == [each[: len(UNFINISHED)] for each in seen]
    assert {"a": "old"} == tree(target)
    monkeypatch.undo()
    copy_files(Copy(str(source), str(target)))
    assert {"a": "1"} == tree(target)


def test_a_full_disk_is_told_and_leaves_no_half_file(tmp_path):
    source = write(tmp_path / "from", a="x" * 100)
    full = Copy(str(source), str(tmp_path / "to"))
    former = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(CopyFailed, match="File too large"):
            copy_files(full)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, former)

    assert [] == list((tmp_path / "to").iterdir())


def test_a_folder_is_moved_in_place_of_what_was_there_and_twice_does_no_harm(tmp_path):
    source = write(tmp_path / "from", new="1")
    target = write(tmp_path / "results" / "flow", old="2")
    move = Copy(str(source), str(target), move=True)

    for _ in range(2):
        copy_files(move)
        assert {"new": "1"} == tree(target)
        assert ["flow"] == [each.name for each in target.parent.iterdir()]
    assert not source.exists()


def test_a_link_is_not_moved(tmp_path):
    write(tmp_path / "secret", key="geheim")
    (tmp_path / "from").symlink_to(tmp_path / "secret")

    with pytest.raises(CopyFailed, match="is not a folder"):
        copy_files(Copy(str(tmp_path / "from"), str(tmp_path / "to"), move=True))


def test_files_that_are_still_being_copied_are_no_data(tmp_path):
    source = write(tmp_path / "from", a="1")
    (source / f"{UNFINISHED}0").write_text("half")

    copy_files(Copy(str(source), str(tmp_path / "to")))

    assert {"a": "1"} == tree(tmp_path / "to")


names = st.sampled_from(["a", "b", "c"])
leads = st.one_of(
    st.lists(st.sampled_from(["a", "b", "..", ".", "secret"]), min_size=1, max_size=4).map(
        "/".join
    ),
    st.sampled_from(["/etc", "../secret", "../to"]),
)


@given(
    st.lists(st.tuples(st.lists(names, min_size=1, max_size=3), st.one_of(st.none(), leads))),
    st.lists(st.tuples(st.lists(names, min_size=1, max_size=3), leads), max_size=3),
)
def test_whatever_links_there_are_nothing_is_read_or_written_elsewhere(entries, planted):
    with tempfile.TemporaryDirectory() as name:
        base = Path(name).resolve()
        secret = write(base / "secret", key="geheim")
        for folder, made in (("from", entries), ("to", [*planted])):
            (base / folder).mkdir()
            for parts, lead in made:
                path = (base / folder).joinpath(*parts)
                if any(each.is_symlink() or each.is_file() for each in path.parents):
                    continue
                if path.exists() or path.is_symlink():
                    continue
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to(lead) if lead is not None else path.write_text("open")
        with contextlib.suppress(CopyFailed):
            copy_files(Copy(str(base / "from"), str(base / "to")))

        assert {"key": "geheim"} == tree(secret)
        assert {"from", "to", "secret"} == {each.name for each in base.iterdir()}
        assert "geheim" not in tree(base / "to").values()
