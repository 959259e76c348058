"""The files that a server keeps in its data folder, by name, and how such a folder is recognised.

Both sides need this: the server writes them, and an upload must never take them along.
"""

from __future__ import annotations

from collections.abc import Collection

#: The first administrator's token.
ADMIN_TOKEN_FILE = "admin-token"  # noqa: S105 - a name
DATABASE_FILE = "bough.db"
#: The key that encrypts credentials.
KEY_FILE = "credential-key"
#: The key by which the server proves who it is, and its public half.
PRIVATE_FILE = "server-key"
PUBLIC_FILE = "server-key.pub"


def is_data_folder(names: Collection[str]) -> bool:
    """Whether a folder with these entries is a server's data folder.

    The server's key is always in it. One more file must be, as a project may have a `server-key`
    of its own. So a folder is not recognised where database and key are elsewhere, by options, and
    the token was deleted.
    """
    others = (ADMIN_TOKEN_FILE, DATABASE_FILE, KEY_FILE)
    return PRIVATE_FILE in names and any(each in names for each in others)
