"""Tags that people gave to workflows. Must not know which workflows have them."""

from __future__ import annotations

from bough.control.access import authorise
from bough.control.site import Site
from bough.model.access import Action, Actor
from bough.store import tags as tag_store


def list_tags(site: Site, actor: Actor) -> list[str]:
    """All tags that are in use, by name; whoever may list workflows sees them there, too."""
    authorise(actor, Action.WORKFLOW_LIST, names=site.role_names)
    with site.store.read() as connection:
        return tag_store.list_tags(connection)
