"""Credentials at rest: encrypted with a key that is in a file of its own, never in the database."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from bough.control.credential_keys import CredentialKeys
from bough.control.people import pass_key
from bough.control.people.credentials import KEY, read_secret
from bough.control.people.key_rotation import rotate
from bough.errors import BoughError
from bough.model.access import CredentialType
from bough.store.migration import upgrade
from bough.store.schema import CREDENTIALS, SETTINGS
from tests.store.usecases import Site, Store, change_history, credentials, setting_store, start
from tests.store.world import refusal

SECRET = "correct horse battery staple"


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return tmp_path / "keys" / "credential-key"


@pytest.fixture
def site(store, key_file) -> Site:
    made = Site(store, credential_keys=CredentialKeys(key_file))
    start(made)
    return made


@pytest.fixture
def ann(world, site):
    assert site
    return world.user("ann", "osmo-admin")


def another(site: Site, path: Path) -> Site:
    """Another server on the same database."""
    return replace(site, credential_keys=CredentialKeys(path))


def put(site: Site, actor, name: str = "hub", secret: str = SECRET) -> None:
    payload = {"registry": "hub.example", "password": secret}
    credentials.set_credential(site, actor, name, CredentialType.REGISTRY, payload)


def read(site: Site, user: str, name: str = "hub") -> str:
    with site.store.read() as connection:
        found = read_secret(connection, site, user, name)
    assert found is not None
    return found["password"]


def everything(store: Store, table: str = "credentials") -> bytes:
    """All bytes that a database has on the disk for credentials, or for another table."""
    if not store.is_sqlite:
        store.run_outside_transactions("CHECKPOINT")
        with store.read() as connection:
            where = sa.select(sa.func.pg_relation_filepath(table))
            path = connection.execute(where).scalar_one()
            query = sa.text("SELECT pg_read_binary_file(:path)")
            return bytes(connection.execute(query, {"path": path}).scalar_one())
    path = Path(store.engine.url.database or "")
    files = (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-journal"))
    return b"".join(each.read_bytes() for each in files if each.exists())


def test_a_credential_is_nowhere_in_the_database_and_is_read_with_the_key(site, ann, key_file):
    put(site, ann)

    assert SECRET == read(site, "ann")
    found = everything(site.store)
    assert b"hub.example" in found
    assert SECRET.encode() not in found
    for key in key_file.read_bytes().split():
        assert key not in found
        assert base64.b64decode(key) not in found
    assert "0o600" == oct(key_file.stat().st_mode & 0o777)
    (shown,) = credentials.list_credentials(site, ann)
    assert (("password", "registry"), "hub.example") == (shown.keys, shown.profile)


def test_what_an_earlier_version_stored_in_clear_is_encrypted_at_the_start(databases, key_file):
    store = Store.open(databases.make(migrated=False))
    upgrade(store, "0005")
    with store.write() as connection:
        connection.execute(
            sa.insert(CREDENTIALS).values(
                user="ann",
                name="hub",
                type="REGISTRY",
                payload={"registry": "hub.example", "password": SECRET},
                created_ms=5,
            )
        )
    assert SECRET.encode() in everything(store)
    site = Site(store, credential_keys=CredentialKeys(key_file))

    assert () == start(site).warnings

    assert SECRET.encode() not in everything(store)
    assert SECRET == read(site, "ann")
    assert SECRET == read(another(site, key_file), "ann")
    store.close()


def test_a_ciphertext_of_another_user_or_name_is_not_used(site, ann, world):
    ben = world.user("ben", "osmo-admin")
    put(site, ann)
    put(site, ben, secret="ben's own")
    put(site, ann, "other", "another one")
    with site.store.write() as connection:
        rows = {
            (row.user, row.name): row.sealed for row in connection.execute(sa.select(CREDENTIALS))
        }
        swap = sa.update(CREDENTIALS).values(sealed=rows["ann", "hub"])
        connection.execute(swap.where(CREDENTIALS.c.user == "ben"))
        connection.execute(swap.where(CREDENTIALS.c.name == "other"))

    text = "was changed in the database, or belongs to another user or name; it is not used."
    assert (503, f"Credential hub of ben {text}") == refusal(read, site, "ben")
    assert (503, f"Credential other of ann {text}") == refusal(read, site, "ann", "other")
    assert SECRET == read(site, "ann")


def test_a_rotation_encrypts_everything_anew_while_a_server_runs(site, ann, key_file):
    put(site, ann)
    before, old = everything(site.store), key_file.read_text()

    done = rotate(another(site, key_file))

    assert (1, 1) == (done.credentials, len(key_file.read_text().split()))
    assert old != key_file.read_text()
    assert "0o600" == oct(key_file.stat().st_mode & 0o777)
    # The server that runs has the old key in memory, and reads the file again.
    assert SECRET == read(site, "ann")
    put(site, ann, "second", "written after it")
    assert "written after it" == read(another(site, key_file), "ann", "second")
    assert before != everything(site.store)
    key_file.write_text(old)
    assert 503 == refusal(read, another(site, key_file), "ann")[0]
    page = change_history.list_audit(site, ann)
    assert "credentials:RotateKey" in {each.action for each in page}


def test_a_rotation_that_was_killed_half_way_loses_nothing(site, ann, key_file):
    put(site, ann)
    begun = CredentialKeys(key_file)
    begun.load()
    begun.add()
    assert 2 == len(key_file.read_text().split())

    restarted = another(site, key_file)
    assert SECRET == read(restarted, "ann")
    start(restarted)
    assert SECRET == read(restarted, "ann")
    with site.store.read() as connection:
        assert begun.current == setting_store.get(connection, KEY)

    assert 1 == rotate(restarted).credentials
    assert 1 == len(key_file.read_text().split())
    assert SECRET == read(restarted, "ann")


def test_two_rotations_do_not_happen_at_once(site, ann, key_file):
    put(site, ann)
    before = key_file.read_text()
    with CredentialKeys(key_file).alone():
        refused = refusal(rotate, another(site, key_file))

    assert (409, "Another rotation of the key is under way.") == refused
    assert before == key_file.read_text()


def test_a_server_with_another_key_says_so_at_its_start_and_where_it_is_used(
    site, ann, key_file, tmp_path
):
    other = another(site, tmp_path / "elsewhere")
    # Both are fresh: which key counts is not decided before the first credential.
    start(other)
    put(site, ann)
    before = everything(site.store)

    known = site.credential_keys.current
    message = (
        f"The credentials in the database are encrypted with the key {known}, which is not in the "
        f"key file {tmp_path / 'elsewhere'}."
    )
    assert (503, message) == refusal(start, other)
    assert (503, message) == refusal(put, other, ann, "mine")
    assert (503, message) == refusal(rotate, other)
    status, text = refusal(read, other, "ann")
    assert (503, True) == (status, text.startswith("Credential hub of ann is encrypted with the"))
    assert ["hub"] == [each.name for each in credentials.list_credentials(other, ann)]
    if site.store.is_sqlite:
        assert before == everything(site.store)

    (tmp_path / "elsewhere").write_bytes(key_file.read_bytes())
    start(other)
    assert SECRET == read(other, "ann")


def test_without_its_key_file_a_server_does_not_start_and_makes_no_other(site, ann, key_file):
    put(site, ann)
    kept = key_file.rename(key_file.with_name("kept"))

    with pytest.raises(BoughError) as caught:
        start(another(site, key_file))

    assert (
        f"The key file {key_file} does not exist, and the credentials in the database are "
        "encrypted with a key."
    ) == caught.value.message
    assert not key_file.exists()
    kept.rename(key_file)
    start(another(site, key_file))
    assert SECRET == read(another(site, key_file), "ann")


@pytest.mark.parametrize(
    ("content", "mode", "message"),
    [
        (
            None,
            0o640,
            "The key file {} can be read or written by others than its owner (mode 0640).",
        ),
        (
            None,
            0o602,
            "The key file {} can be read or written by others than its owner (mode 0602).",
        ),
        (b"", 0o600, "The key file {}: line 1 is not a key of 32 bytes in base64."),
        (b"c2hvcnQ=\n", 0o600, "The key file {}: line 1 is not a key of 32 bytes in base64."),
        (b"\xff\n", 0o600, "The key file {}: line 1 is not a key of 32 bytes in base64."),
    ],
)
def test_a_key_file_that_others_can_read_or_that_is_none_is_refused(
    tmp_path, content, mode, message
):
    path = tmp_path / "key"
    keys = CredentialKeys(path)
    keys.ensure(needed=False)
    if content is not None:
        path.write_bytes(content)
    path.chmod(mode)

    assert (400, message.format(path)) == refusal(keys.ensure, needed=True)


def pass_key_of(site: Site) -> bytes:
    return pass_key.open_key(site, pass_key.sealed_key(site))


def settings_of(site: Site) -> dict[str, object]:
    with site.store.read() as connection:
        rows = connection.execute(sa.select(SETTINGS)).all()
    return {row.name: row.value for row in rows}


def test_the_key_that_signs_passes_is_nowhere_in_the_database(site, key_file):
    key = pass_key_of(site)

    assert key == pass_key_of(another(site, key_file))
    assert key not in everything(site.store, "settings")
    assert "pass-key" in settings_of(site)
    # What stands there cannot be made by one who has the database alone.
    with site.store.write() as connection:
        forged = CredentialKeys().seal_setting("pass-key", "mine")
        setting_store.put(connection, "pass-key", forged)
    assert "is encrypted with the key" in refusal(pass_key_of, site)[1]
    with site.store.write() as connection:
        elsewhere = site.credential_keys.seal_setting("another", "mine")
        setting_store.put(connection, "pass-key", elsewhere)
    assert (503, "The key that signs passes was changed in the database; it is not used.") == (
        refusal(pass_key_of, site)
    )


def test_a_key_of_passes_that_was_stored_in_clear_is_forgotten_and_not_used_again(site):
    with site.store.write() as connection:
        setting_store.put(connection, "signing-key", "in every backup")

    assert () == start(site).warnings

    assert "signing-key" not in settings_of(site)
    assert b"in every backup" != pass_key_of(site)


def test_a_rotation_ends_passes_and_later_ones_are_signed_by_all_servers(site, ann, key_file):
    put(site, ann)
    before = pass_key_of(site)

    rotate(another(site, key_file))

    assert before != pass_key_of(site)
    assert pass_key_of(site) == pass_key_of(another(site, key_file))
    # Also where there is no credential, and so no key that counts yet.
    credentials.delete_credential(site, ann, "hub")
    with site.store.write() as connection:
        setting_store.remove(connection, KEY, "pass-key")
    rotate(another(site, key_file))
    assert pass_key_of(site) == pass_key_of(another(site, key_file))


def test_a_server_with_another_key_says_that_it_cannot_sign_and_a_lone_one_makes_a_new_key(
    site, key_file
):
    before = pass_key_of(site)
    other = another(site, key_file.with_name("another-key"))

    warnings = start(other).warnings

    if site.store.is_sqlite:
        assert () == warnings
        assert before != pass_key_of(other)
    else:
        (text,) = warnings
        assert text.startswith("Passes are neither made nor accepted here. The key that signs")
        assert "use the same key file (--key-file) on all servers of a database" in text
        assert before == pass_key_of(site)
        assert 503 == refusal(pass_key_of, other)[0]
