"""Images of a folder: found by their names, unpacked safely, and entered by the sandbox."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bough.backends.local.errors import Unstartable, lacks_room
from bough.backends.local.images.image_folder import ImageFolder
from bough.backends.local.task_command import SandboxKind
from bough.errors import Unavailable
from bough.model.backend import Sight
from bough.model.task_template import FileSpec, TaskTemplate
from tests.local.bench import Bench
from tests.local.desk import Desk
from tests.local.image_roots import Layer, make_root, write_archive
from tests.local.plain_account import as_plain_account
from tests.local.test_sandbox import Room, needs_root


@pytest.fixture(scope="module")
def images() -> Iterator[Path]:
    """A folder with `debian:12`, and the same as the archive `archive`."""
    base = "/var/lib" if os.geteuid() == 0 else str(Path.home())
    with TemporaryDirectory(prefix="bough-images-", dir=base) as name:
        folder = Path(name)
        # For the users that tasks run as.
        folder.chmod(0o755)
        root = make_root(folder / "debian:12")
        again = Layer().file("etc/marked", "twice\n").file("opt/start/here")
        write_archive(folder / "archive", Layer().tree(root), again)
        yield folder


@pytest.fixture
def bench(tmp_path: Path, images: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path, private=True, image_folder=images)
    try:
        yield bench
    finally:
        bench.end()


# Entered


def test_a_task_sees_the_files_of_its_image_and_not_those_of_the_machine(bench: Bench):
    script = "cat /etc/marked; ls -d /usr/share/doc/busybox-static /etc/debian_version /root; echo"
    attempt = bench.run_shell(script, image="debian:12")

    assert Sight.ENDED is bench.wait_over(attempt).sight
    texts = bench.texts(attempt)
    assert "by the image" == texts[0]
    assert "/usr/share/doc/busybox-static" in texts
    assert "ls: /etc/debian_version: No such file or directory" in texts


def test_a_task_writes_to_its_own_folders_and_not_to_the_image(bench: Bench, images: Path):
    script = (
        "cat /data/in; echo a > /tmp/a; echo b > /osmo/work/b; touch /etc/new /bin/new; "
        "ls /etc/new /bin/new /osmo/work /tmp"
    )
    files = (FileSpec("/data/in", "given\n"),)
    attempt = bench.run_shell(script, image="debian:12", files=files)

    bench.wait_over(attempt)
    texts = bench.texts(attempt)
    assert "given" == texts[0]
    assert {"touch: /etc/new: Read-only file system", "b", "a"} <= set(texts)
    assert not (images / "debian:12/etc/new").exists()


def test_an_image_without_names_of_hosts_has_them_when_it_is_entered(bench: Bench, images: Path):
    root = images / "debian:12"
    assert not (root / "etc/hosts").exists()
    for image in ("debian:12", "archive"):
        attempt = bench.run_shell("cat /etc/hosts; cat /etc/marked; touch /etc/x", image=image)
        bench.wait_over(attempt)
        texts = bench.texts(attempt)
        assert ["127.0.0.1\tlocalhost", "::1\tlocalhost ip6-localhost ip6-loopback"] == texts[:2]
        # What the image has is there as well, and nothing can be written.
        assert texts[2] in ("by the image", "twice")
        assert "touch: /etc/x: Read-only file system" == texts[3]
    assert not (root / "etc/hosts").exists()
    (root / "etc/hosts").write_text("192.0.2.1 other\n")
    try:
        attempt = bench.run_shell("cat /etc/hosts", image="debian:12")
        bench.wait_over(attempt)
        assert ["192.0.2.1 other"] == bench.texts(attempt)
    finally:
        (root / "etc/hosts").unlink()


@pytest.mark.parametrize(
    "kind", [pytest.param(SandboxKind.NAMESPACES, marks=needs_root), SandboxKind.USER_NAMESPACES]
)
def test_an_image_is_entered_by_every_kind_of_namespaces(kind: SandboxKind, images: Path):
    with TemporaryDirectory(prefix="bough-", dir=images.parent) as name:
        room = Room(kind, Path(name).resolve(), image_folder=images)

        out = room.read("cat /etc/marked; touch /etc/x 2> /dev/null || echo no", image="debian:12")

    assert "by the image\nno\n" == out


def test_bubblewrap_enters_no_images(tmp_path: Path, images: Path):
    desk = Desk(tmp_path, image_folder=images)
    template = TaskTemplate(image="debian:12", command=("sh",))

    message = desk.refuse(template, SandboxKind.BUBBLEWRAP)

    assert 'image: "debian:12" cannot be entered by the sandboxes that work here' == message


def test_an_archive_is_unpacked_once_and_gives_its_variables(bench: Bench):
    script = 'cat /etc/marked; echo "$PATH $FROM_IMAGE $KEPT"'
    environment = {"KEPT": "yes", "FROM_IMAGE": "no"}
    for _ in range(2):
        attempt = bench.run_shell(script, image="archive", environment=environment)
        assert 0 == bench.wait_over(attempt).exit_code
        assert ["twice", "/opt/own:/bin no yes"] == bench.texts(attempt)
    unpacked = [each for each in bench.options.unpacked_images.iterdir() if each.is_dir()]
    assert 1 == len(unpacked)


def test_a_task_without_an_image_sees_the_machine(bench: Bench):
    attempt = bench.run_shell("test ! -e /etc/marked && test -e /etc/os-release")

    assert 0 == bench.wait_over(attempt).exit_code


@pytest.mark.parametrize(
    ("image", "files", "folder"),
    [
        ("debian:12", (), "/"),
        ("archive", (), "/opt/start"),
        ("archive", (FileSpec("/data/x", ""),), "/opt/start"),
        ("archive", (FileSpec("x", ""),), "/osmo/work"),
    ],
)
def test_a_task_starts_where_its_image_says_or_where_its_files_are(
    bench: Bench, image: str, files: tuple[FileSpec, ...], folder: str
):
    attempt = bench.run_shell('/bin/busybox pwd; echo "$PWD $HOME"', image=image, files=files)

    assert 0 == bench.wait_over(attempt).exit_code
    assert [folder, f"{folder} /osmo/work"] == bench.texts(attempt)


def test_a_program_that_the_image_lacks_is_told(bench: Bench):
    attempt = bench.run("python3", image="debian:12")

    assert "python3" in (bench.wait_over(attempt).message or "")


def test_images_need_a_sandbox(tmp_path: Path, images: Path):
    with pytest.raises(Unavailable, match="Images of a folder need a sandbox in namespaces"):
        Bench(tmp_path, private=False, image_folder=images)


# Found


@pytest.fixture
def folder(tmp_path: Path) -> ImageFolder:
    """A folder of empty roots: `a`, `deep/b:1`, a link `c`, and a folder that is no root."""
    base = tmp_path / "images"
    for name in ("a/usr/lib/usr", "deep/b:1/bin", "empty/x", "../outside/usr"):
        (base / name).mkdir(parents=True)
    (base / "c").symlink_to("a")
    return ImageFolder(base, tmp_path / "unpacked")


def test_images_are_found_by_their_names(folder: ImageFolder, tmp_path: Path):
    found = [folder.open(name).root for name in ("a", "deep/b:1", "c")]

    base = tmp_path / "images"
    assert [base / "a", base / "deep/b:1", base / "a"] == found


@pytest.mark.parametrize(
    "name",
    [
        *("../outside", "a/../../outside", "/etc", "a//b", "a/", ".", "..", "a/.", "~root"),
        *("a b", "x\n", "-a", "é", "", "\0"),
    ],
)
def test_hostile_names_are_no_names(folder: ImageFolder, name: str):
    assert str(folder.fault(name)).endswith(" is not the name of an image")


def test_a_name_that_is_too_long_is_none(folder: ImageFolder):
    assert str(folder.fault("a" * 600)).endswith(" is not the name of an image")
    assert str(folder.fault("/".join("a" * 300))).endswith(" is not the name of an image")


@pytest.mark.parametrize("name", ["b", "a/usr/lib", "a/usr", "empty", "deep", "empty/x/y"])
def test_a_missing_image_is_told_with_those_that_there_are(folder: ImageFolder, name: str):
    expected = f'image: this server has no image "{name}"; it has: a, c, deep, empty'

    assert expected == folder.fault(name)


def test_a_file_cannot_be_written_into_the_folders_of_an_image(tmp_path: Path):
    (tmp_path / "images/a/usr").mkdir(parents=True)
    desk = Desk(tmp_path, image_folder=tmp_path / "images")
    template = TaskTemplate(image="a", command=("x",), files=(FileSpec("/usr/x", ""),))

    assert 'files[0]: "/usr/x" is in /usr of its image' in desk.refuse(template)
    free = TaskTemplate(image="a", command=("x",), files=(FileSpec("/etc/x", ""),))
    sandbox = desk.prepare(free).sandbox
    assert sandbox is not None
    assert (str(tmp_path / "images/a"), "/etc") == (sandbox.image, sandbox.mounts[0].target)


# Unpacked


def unpack(tmp_path: Path, *layers: Layer, **manifest) -> Path:
    base = tmp_path / "images"
    base.mkdir()
    write_archive(base / "x", *layers, **manifest)
    return ImageFolder(base, tmp_path / "unpacked").open("x").root


def test_later_layers_hide_what_they_mark_as_removed(tmp_path: Path):
    first = Layer().file("etc/one", "1").file("etc/two", "2").file("opt/old", "").file("bin/sh", "")
    second = Layer().file("etc/.wh.one").file("opt/.wh..wh..opq").file("opt/new", "n", 0o755)

    root = unpack(tmp_path, first, second)

    files = sorted(str(each.relative_to(root)) for each in root.rglob("*") if each.is_file())
    assert ["bin/sh", "etc/two", "opt/new"] == files
    assert os.access(root / "opt/new", os.X_OK)


def test_nothing_is_written_outside_of_the_root(tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    layer = (
        Layer()
        .file("../../../outside/a", "x")
        .link("up", "../../../outside")
        .file("up/b", "x")
        .link("there", str(outside))
        .file("there/c", "x")
        .file("there/.wh.kept")
        .link("hard", str(outside / "kept"), tarfile.LNKTYPE)
        .link("null", "", tarfile.CHRTYPE)
        .link("loop", "loop")
    )

    root = unpack(tmp_path, layer)

    assert ["kept"] == os.listdir(outside)
    assert "x" == (root / "outside/a").read_text()
    assert "x" == (root / "outside/b").read_text()
    assert not (root / "hard").exists()
    assert not (root / "null").exists()


def test_a_path_that_leads_nowhere_is_refused_and_nothing_is_left(tmp_path: Path):
    with pytest.raises(Unstartable, match="too many links"):
        unpack(tmp_path, Layer().link("loop", "loop").file("loop/x"))

    assert not [each for each in (tmp_path / "unpacked").glob("*") if each.suffix == ""]


@pytest.mark.parametrize(
    "layer",
    [
        Layer().file("etc/one").file("etc/one/two"),
        Layer().link("link", ""),
        Layer().file("x" * 300),
    ],
    ids=["below-a-file", "link-to-nothing", "long-name"],
)
def test_a_layer_with_impossible_files_is_the_fault_of_the_image(tmp_path: Path, layer: Layer):
    with pytest.raises(Unstartable, match=r'image: "x" is no OCI archive.*cannot be unpacked'):
        unpack(tmp_path, Layer().file("bin/sh"), layer)

    assert not list((tmp_path / "unpacked").glob("*.part"))


def test_a_description_that_is_nested_without_end_is_told(tmp_path: Path):
    content = b'{"manifests": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with tarfile.open(tmp_path / "x", "w") as tar:
        member = tarfile.TarInfo("index.json")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))

    with pytest.raises(Unstartable, match=r"index\.json cannot be read"):
        ImageFolder(tmp_path, tmp_path / "unpacked").open("x")


def test_later_layers_write_into_read_only_folders_without_rights_of_root():
    first = Layer().folder("bin", 0o555).file("bin/sh").folder("etc", 0o700).file("etc/a")
    second = Layer().file("bin/new").file("bin/.wh.sh").folder("etc", 0o555)

    def work() -> str:
        with TemporaryDirectory() as name:
            root = unpack(Path(name), first, second)
            found = f"{os.listdir(root / 'bin')} {(root / 'bin').stat().st_mode & 0o777:o} "
            found += f"{(root / 'etc').stat().st_mode & 0o777:o}"
            for each in ("bin", "etc"):
                (root / each).chmod(0o755)
            return found

    assert "['new'] 555 555" == (work() if os.geteuid() else as_plain_account(work))


def test_contents_that_are_not_what_their_name_says_are_refused(tmp_path: Path):
    path = tmp_path / "images/x"
    path.parent.mkdir()
    write_archive(path, Layer().file("etc/one", "first"))
    path.write_bytes(path.read_bytes().replace(b"first", b"other"))

    with pytest.raises(Unstartable, match="has other contents than its name says"):
        ImageFolder(path.parent, tmp_path / "unpacked").open("x")


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ({"layers": [{"digest": "md5:1"}]}, "'md5:1' is not a sha256 digest"),
        ({"layers": [{"mediaType": "x+zstd"}]}, "compressed by zstd"),
        ({"layers": [{"digest": f"sha256:{'0' * 64}"}]}, "it has no blobs/sha256/000"),
        ({"layers": ["x"]}, "a layer cannot be read"),
        ({"layers": 5}, "a layer cannot be read"),
        ({"config": ["x"]}, "its description is not in order"),
        ({"config": None}, "None is not a sha256 digest"),
    ],
)
def test_what_cannot_be_unpacked_is_told(tmp_path: Path, manifest, message: str):
    with pytest.raises(Unstartable, match=message):
        unpack(tmp_path, **manifest)


@needs_root
def test_an_image_that_would_fill_the_disk_is_not_unpacked(tmp_path: Path):
    write_archive(
        tmp_path / "large", Layer().file("usr/a", "x" * 1_000).file("usr/b", "x" * 50_000)
    )
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["/usr/bin/mount", "-t", "tmpfs", "-o", "size=2m", "none", disk], check=True)
    try:
        folder = ImageFolder(tmp_path, disk / "unpacked")
        # A twentieth of it is left to others, and the image would need half of that.
        (disk / "other").write_bytes(bytes(shutil.disk_usage(disk).free - 140_000))
        with pytest.raises(OSError, match="too little room") as raised:
            folder.open("large")
        assert lacks_room(raised.value)
        assert [] == [each for each in (disk / "unpacked").iterdir() if each.suffix != ".lock"]
        (disk / "other").unlink()
        assert (folder.open("large").root / "usr/b").is_file()
    finally:
        subprocess.run(["/usr/bin/umount", disk], check=True)


@pytest.mark.parametrize("content", [b"", b"no tar", b"\0" * 10_240])
def test_what_is_no_archive_is_told(tmp_path: Path, content: bytes):
    (tmp_path / "x").write_bytes(content)

    with pytest.raises(Unstartable, match='image: "x" is no OCI archive that can be used'):
        ImageFolder(tmp_path, tmp_path / "unpacked").open("x")
