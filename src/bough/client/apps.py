"""Apps of a server: workflow files that it keeps, in versions."""

from __future__ import annotations

from collections.abc import Sequence

from bough.api.apps import AppAnswer, AppLine, AppList, DeletedVersions, NewAppVersion
from bough.client.addresses import given, path_of
from bough.client.transport import Transport

#: The most apps or versions in one answer.
_PAGE = 1_000
#: Spelled out here, because `Apps.list` hides the type of that name.
AppLines = list[AppLine]


class Apps:
    """Workflow files under a name."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self,
        *,
        name: str = "",
        users: Sequence[str] = (),
        all_users: bool = False,
        count: int = 20,
    ) -> AppLines:
        """The newest apps, newest first; by default those of the user."""
        found: AppLines = []
        while len(found) < count:
            asked = given(
                name=name or None,
                users=list(users) or None,
                all_users=all_users or None,
                order="DESC",
                limit=min(count - len(found), _PAGE),
                offset=len(found),
            )
            page = self._transport.get(AppList, path_of("app"), asked)
            found += page.apps
            if not page.more_entries:
                break
        return found

    def get(self, name: str, version: int | None = None, count: int = 20) -> AppAnswer:
        """An app with its latest versions, newest first, or with one version."""
        asked = given(version=version, order="DESC", limit=min(count, _PAGE))
        return self._transport.get(AppAnswer, path_of("app", "user", name), asked)

    def text(self, name: str, version: int | None = None) -> str:
        """The workflow file of a version, by default of the latest one."""
        path = path_of("app", "user", name, "spec")
        return self._transport.text(path, given(version=version))

    def create(self, name: str, description: str, text: str) -> AppAnswer:
        """Keep a workflow file under a new name."""
        path = path_of("app", "user", name)
        self._transport.send(None, "POST", path, text, given(description=description))
        return self.get(name)

    def update(self, name: str, text: str) -> NewAppVersion:
        """Add a version."""
        return self._transport.send(NewAppVersion, "PATCH", path_of("app", "user", name), text)

    def rename(self, name: str, new_name: str) -> str:
        """Rename an app."""
        return self._transport.send(str, "POST", path_of("app", "user", name, "rename"), new_name)

    def delete(self, name: str, version: int | None = None) -> DeletedVersions:
        """Delete a version, or all of them."""
        asked = given(version=version, all_versions=True if version is None else None)
        path = path_of("app", "user", name)
        return self._transport.send(DeletedVersions, "DELETE", path, None, asked)
