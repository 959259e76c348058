"""Finished workflows, page by page for an export, and dropped afterwards."""

from __future__ import annotations

from litestar.params import FromQuery, JSONBody

from bough.api.history_export import DropHistory, DroppedHistory, HistoryPage
from bough.control.workflows import history_export
from bough.errors import Invalid
from bough.model.access import Action
from bough.model.past_workflow import HistoryPlace
from bough.server.route_declaration import MAXIMUM_NUMBER, Limit, Visit, caller, route
from bough.server.values import read_moment_ms, time_text


@route("GET", "/api/history", Action.HISTORY_READ)
def read_history(
    request: Visit, until: FromQuery[str], after: FromQuery[str | None] = None, limit: Limit = 200
) -> HistoryPage:
    """Complete records of the workflows that ended before a time, in the order they ended."""
    site, actor = caller(request)
    until_ms = read_moment_ms("until", until, site.clock.now_ms())
    place = None if after is None else _place(after)
    found = history_export.read_page(site, actor, until_ms, place, limit)
    following = found.after
    text = None if following is None else f"{following.ended_ms}-{following.uuid}"
    return HistoryPage(list(found.workflows), time_text(until_ms) or "", text)


@route("POST", "/api/history/drop", Action.HISTORY_DROP)
def drop_history(request: Visit, data: JSONBody[DropHistory]) -> DroppedHistory:
    """Delete finished workflows after an export; their GPU-hours, events and audit stay."""
    site, actor = caller(request)
    return DroppedHistory(history_export.drop(site, actor, data.workflows))


def _place(text: str) -> HistoryPlace:
    ended, _, uuid = text.partition("-")
    if ended.isascii() and ended.isdecimal() and len(ended) <= 16 and uuid.isalnum():
        return HistoryPlace(min(int(ended), MAXIMUM_NUMBER), uuid)
    raise Invalid(f"after must be what an earlier page had as next, not {text[:60]!r}.")


HANDLERS = (read_history, drop_history)
