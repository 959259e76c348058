"""Pools and subpools as text. Must not know how the numbers were found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bough.cli.ruled import NOTHING, render_fields, render_ruled, show_time
from bough.cli.text.subpools import drain_lines

_HEADER = ("Pool", "Status", "Subpool State", "GPU Quota", "Used", "Available")
_LEAST = (14, 13, 13)
_USED = (("Quota Used", "quota_used"), ("Quota Limit", "quota_limit"))
_MODES = {
    "used": (*_USED, ("Total Usage", "total_usage"), ("Total Capacity", "total_capacity")),
    "free": (("Quota Free", "quota_free"), ("Total Free", "total_free")),
}
_LIMITS = (
    ("Borrows", "borrowing_limit"),
    ("Lends", "lending_limit"),
    ("GPUs per User", "user_gpu_limit"),
    ("Exec Timeout", "default_exec_timeout"),
    ("Maximum Exec Timeout", "max_exec_timeout"),
    ("Queue Timeout", "default_queue_timeout"),
    ("Maximum Queue Timeout", "max_queue_timeout"),
    ("Exit Actions", "default_exit_actions"),
)
#: Counted over all nodes that pools share, so said again for each of them.
_SHARED = ("total_capacity", "total_free")


def render_pools(answer: Any, *, verbose: bool = False) -> str:
    """Pools with their subpools as trees: what is left for the pool itself, and for each part.

    Verbose, it also says what can really start now, and what keeps a drain open.
    """
    rows = [_row(*each, verbose=verbose) for each in _tree(answer)]
    if not rows:
        return "No pools available"
    header = (*_HEADER, "Can Start") if verbose else _HEADER
    table = render_ruled(header, rows, rule="-", gap="  ", least=_LEAST)
    notes = [line for _, pool, _ in _tree(answer) for line in _notes(pool)] if verbose else []
    return "\n".join([table, "", *notes]) if notes else table


def _notes(pool: Any) -> Iterator[str]:
    """Why less can start than is left on paper, and what keeps a drain open."""
    if pool.get("can_start_note"):
        yield f"{pool['name']} can start {pool['can_start']}: {pool['can_start_note']}"
    if pool.get("drain"):
        first, *rest = drain_lines(pool["drain"])
        yield f"{pool['name']} is {first}"
        yield from rest


def render_usage(answer: Any, mode: str) -> str:
    """Pools with what is used, or free, of quota and nodes, and the sums."""
    columns = _MODES[mode]
    rows: list[list[str]] = []
    for node_set in answer["node_sets"]:
        for number, pool in enumerate(node_set["pools"]):
            usage = pool["resource_usage"]
            numbers = [
                f"{usage[key]} (shared)" if number and key in _SHARED else str(usage[key])
                for _, key in columns
            ]
            description = pool.get("description") or ""
            rows.append([pool["name"], description, pool["status"], *numbers])
    if not rows:
        return "No pools available"
    titles = [f"\n{title}" for title, _ in columns]
    titles[0] = f"GPU [#]{titles[0]}"
    totals = ["", "", "", *(str(answer["resource_sum"][key]) for _, key in columns)]
    return render_ruled(("Pool", "Description", "Status", *titles), rows, totals=totals)


def render_subpools(answer: Any) -> str:
    """A line for each subpool."""
    if not answer:
        return "There are no subpools."
    rows = [(each["name"], each["status"], each["subpool_state"], _quota(each)) for each in answer]
    return render_ruled(("Subpool", "Status", "State", "GPU Quota"), rows)


def render_pool(pool: Any) -> str:
    """One pool or subpool, field by field."""
    fields: list[tuple[str, Any]] = [("Pool", pool["name"])]
    if pool.get("subpool_name"):
        fields += [("Parent", pool["parent_pool"]), ("State", pool["subpool_state"])]
    fields += [
        ("Status", pool.get("status")),
        ("GPU Quota", _quota(pool)),
        *_limits(pool),
        ("Backend", pool.get("backend")),
        ("Cohort", pool.get("cohort")),
        ("Description", pool.get("description") or NOTHING),
    ]
    shown = render_fields(fields)
    if pool.get("drain"):
        first, *rest = drain_lines(pool["drain"])
        return "\n".join([shown, "", f"It is {first}", *rest])
    return shown


def _limits(pool: Any) -> Iterator[tuple[str, Any]]:
    """What is set of all that can be; what nobody set says nothing."""
    gpu = (pool.get("resources") or {}).get("gpu") or {}
    if gpu.get("maximum", -1) != -1:
        yield "Maximum", gpu["maximum"]
    if gpu.get("weight", 1) != 1:
        yield "Weight", gpu["weight"]
    for title, field in _LIMITS:
        value = pool.get(field)
        if value not in (None, "", {}):
            yield title, value


def render_history(answer: Any) -> str:
    """A line for each change, in order."""
    rows = [
        (
            each["revision"],
            show_time(each["created_at"]),
            each["username"],
            _state(each.get("data")),
            each.get("description") or NOTHING,
        )
        for each in answer
    ]
    return render_ruled(("Revision", "Time", "User", "After", "Description"), rows)


def _tree(answer: Any) -> Iterator[tuple[str, Any, str]]:
    """Each pool followed by its subpools: how it is drawn, itself, and its quota."""
    pools = [pool for each in answer["node_sets"] for pool in each["pools"]]
    by_name = {pool["name"]: pool for pool in pools}
    children: dict[str, list[Any]] = {}
    for pool in pools:
        parent = pool.get("parent_pool")
        if parent in by_name:
            children.setdefault(parent, []).append(pool)
    nested = {pool["name"] for each in children.values() for pool in each}
    for name in sorted(by_name.keys() - nested):
        pool, below = by_name[name], sorted(children.get(name, ()), key=lambda each: each["name"])
        limit = str(pool["resource_usage"]["quota_limit"])
        if below:
            limit = f"{limit} (Total: {_total(pool, below)})"
        yield "", pool, limit
        for child in below:
            stem = "└─ " if child is below[-1] else "├─ "
            yield stem, child, str(child["resource_usage"]["quota_limit"])


def _row(stem: str, pool: Any, limit: str, *, verbose: bool) -> tuple[str, ...]:
    usage = pool["resource_usage"]
    state = pool.get("subpool_state") or NOTHING
    used, free = str(usage["quota_used"]), str(usage["quota_free"])
    row = (stem + pool["name"], pool["status"], state, limit, used, free)
    return (*row, str(pool.get("can_start", NOTHING))) if verbose else row


def _total(pool: Any, below: list[Any]) -> Any:
    total = pool.get("quota_total")
    if total is not None:
        return total
    return sum(int(each["resource_usage"]["quota_limit"]) for each in (pool, *below))


def _quota(pool: Any) -> str:
    quota = pool.get("quota")
    if quota is None:
        quota = pool["resources"]["gpu"]["guarantee"]
    return "no limit" if quota == -1 else str(quota)


def _state(data: Any) -> str:
    if not isinstance(data, dict):
        return "deleted" if data is None else str(data)
    state = data.get("state") or data.get("subpool_state")
    return f"{state}, quota {data.get('quota')}"
