"""Pools and subpools as text. Must not know how the numbers were found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bough.cli.ruled import NOTHING, render_fields, render_ruled, show_time

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


def render_pools(answer: Any) -> str:
    """Pools with their subpools as trees: what is left for the pool itself, and for each part."""
    rows = [list(row) for row in _tree_rows(answer)]
    if not rows:
        return "No pools available"
    return render_ruled(_HEADER, rows, rule="-", gap="  ", least=_LEAST)


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
    return render_fields(fields)


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


def _tree_rows(answer: Any) -> Iterator[tuple[str, ...]]:
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
        yield _row("", pool, limit)
        for child in below:
            stem = "└─ " if child is below[-1] else "├─ "
            yield _row(stem, child, str(child["resource_usage"]["quota_limit"]))


def _row(stem: str, pool: Any, limit: str) -> tuple[str, ...]:
    usage = pool["resource_usage"]
    state = pool.get("subpool_state") or NOTHING
    used, free = str(usage["quota_used"]), str(usage["quota_free"])
    return (stem + pool["name"], pool["status"], state, limit, used, free)


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
