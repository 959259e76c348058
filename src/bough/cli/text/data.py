"""The data of pools, and the results of transfers, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.cli.output import count
from bough.cli.tables import render_table
from bough.cli.times import show_time

if TYPE_CHECKING:
    from bough.api.pool_data import DataListing, StoreListing, Transferred
    from bough.api.results import Downloaded

_UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def render_listing(listing: DataListing) -> str:
    """A line for each file, and how full the pool is."""
    used, quota = show_bytes(listing.used_bytes), show_bytes(listing.quota_bytes)
    full = f"Pool {listing.pool} uses {used} of {quota} for data."
    if not listing.files:
        return f"No files.\n{full}"
    rows = [
        (
            each.path,
            show_bytes(each.size_bytes),
            show_time(each.modify_time),
            each.owner,
            show_time(each.kept_until),
        )
        for each in listing.files
    ]
    header = ("Path", "Size", "Written", "By", "Kept Until")
    more = "\nThere are more files; -c shows more of them." if listing.more_entries else ""
    return f"{render_table(header, rows, numbers=(1,), cut=0)}{more}\n\n{full}"


def render_objects(listing: StoreListing) -> str:
    """A line for each object of a store."""
    if not listing.files:
        return "No files."
    rows = [
        (each.path, show_bytes(each.size_bytes), show_time(each.modify_time))
        for each in listing.files
    ]
    more = "\nThere are more files; -c shows more of them." if listing.more_entries else ""
    return f"{render_table(('Path', 'Size', 'Written'), rows, numbers=(1,), cut=0)}{more}"


def render_sent(done: Transferred) -> str:
    """The result of an upload."""
    text = f"{count(done.files, 'file')}, {show_bytes(done.bytes)}, in {done.url}"
    text += f"; {show_bytes(done.sent_bytes)} were sent"
    if done.left_out:
        text += f"; {count(done.left_out, 'link')} or the like left out"
    return text


def render_downloaded(done: Downloaded) -> str:
    """The result of a download."""
    text = f"{count(done.files, 'file')}, {show_bytes(done.bytes)}, in {done.folder}"
    if done.unchanged:
        text += f"; {done.unchanged} already there"
    if done.left_out:
        text += f"; {count(done.left_out, 'link')} or the like left out"
    return text


def show_bytes(size: int) -> str:
    """A size as people write it."""
    for unit, name in _UNITS:
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return count(size, "byte")
