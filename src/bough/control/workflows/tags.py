"""Tags that people gave to workflows. Must not know which workflows have them."""

from __future__ import annotations

from collections.abc import Sequence

from bough.control.people.access import authorise
from bough.control.site import Site
from bough.errors import Invalid
from bough.model.access import Action, Actor
from bough.store import tags as tag_store

MAXIMUM_TAGS = 100
LONGEST_TAG = 100


def check_tags(tags: Sequence[str], *, kept: int) -> None:
    """Refuse tags that cannot be shown in a line, or would be too many with those that are kept."""
    for tag in tags:
        if not tag.strip() or len(tag) > LONGEST_TAG or not tag.isprintable():
            raise Invalid(
                f"{tag[:60]!r} cannot be a tag: it has 1 to {LONGEST_TAG} characters, none of "
                "which breaks a line or cannot be shown."
            )
    if kept > MAXIMUM_TAGS:
        raise Invalid(f"The workflow would have {kept} tags; at most {MAXIMUM_TAGS} are possible.")


def list_tags(site: Site, actor: Actor) -> list[str]:
    """All tags that are in use, by name; whoever may list workflows sees them there, too."""
    authorise(actor, Action.WORKFLOW_LIST, names=site.role_names)
    with site.store.read() as connection:
        return tag_store.list_tags(connection)
