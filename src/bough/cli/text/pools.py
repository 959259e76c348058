"""Pools and subpools as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bough.cli.output import count, printable
from bough.cli.screen import screen
from bough.cli.tables import NOTHING, cell_text, render_fields, render_ruled, render_table

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
#: How many workflows a text names; JSON has more.
MAXIMUM_NAMED = 10
#: Counted over all nodes that pools share, so said again for each of them.
_SHARED = ("total_capacity", "total_free")


def render_pools(answer: Any, *, verbose: bool = False) -> str:
    """Pools with their subpools as trees: what is left for the pool itself, and for each part.

    Verbose, it also says what can really start now, and what keeps a drain open.
    """
    tree = list(_tree(answer))
    if not tree:
        return "No pools available"
    table = (_osmo_tree if screen().osmo else _plain_tree)(tree, verbose=verbose)
    notes = [line for _, pool, _ in tree for line in _notes(pool)] if verbose else []
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
    totals = ["", "", "", *(str(answer["resource_sum"][key]) for _, key in columns)]
    titles = [title for title, _ in columns]
    if screen().osmo:
        titles = [f"\n{title}" for title in titles]
        titles[0] = f"GPU [#]{titles[0]}"
    header = ("Pool", "Description", "Status", *titles)
    return render_table(header, rows, totals=totals, numbers=range(3, 7), status=2, cut=1)


def render_subpools(answer: Any) -> str:
    """A line for each subpool."""
    if not answer:
        return "There are no subpools."
    rows = [(each["name"], each["status"], each["subpool_state"], _quota(each)) for each in answer]
    return render_table(("Subpool", "Status", "State", "GPU Quota"), rows, numbers=(3,), status=1)


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


def render_pool_change(answer: Any, name: str) -> str:
    """A pool that was updated, or would be."""
    verb = "would be" if answer.get("planned") else "is"
    return "\n".join([f"Pool {name} {verb} updated.", *_consequences(answer)])


def render_change(answer: Any, what: str) -> str:
    """A subpool that was created or updated, or would be."""
    gpus = count(answer["quota"], "GPU")
    verb = "would be" if answer.get("planned") else "is"
    first = f"Subpool {answer['name']} {verb} {what}: {answer['subpool_state']}, quota {gpus}."
    return "\n".join([first, *_consequences(answer)])


def render_deletion(answer: Any) -> str:
    """A subpool that was deleted, or would be."""
    name, state = answer["name"], answer["subpool_state"]
    verb = "would be" if answer.get("planned") else "is"
    first = f"Subpool {name} {verb} {state}."
    if state == "DELETING":
        first = f"Subpool {name} {verb} {state}: it is archived when its workflows have ended."
    return "\n".join([first, *_consequences(answer)])


def drain_lines(drain: Any) -> Iterator[str]:
    """What keeps a drain open."""
    number = drain["workflow_count"]
    yield f"kept open by {count(number, 'workflow')}:"
    shown = drain["workflows"][:MAXIMUM_NAMED]
    for each in shown:
        amount = count(each["gpus"], "GPU")
        yield printable(
            f"  {each['workflow_id']} ({each['status']}, {each['priority']}, {amount}, "
            f"{each['submitted_by']}) {each['message']}"
        )
    yield from _rest(number - len(shown))


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


def _tree(answer: Any) -> Iterator[tuple[str, Any, Any]]:
    """Each pool followed by its subpools: its stem, itself, and what it has with its subpools."""
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
        yield "", pool, _total(pool, below) if below else None
        for child in below:
            yield "└─ " if child is below[-1] else "├─ ", child, None


def _plain_tree(tree: list[tuple[str, Any, Any]], *, verbose: bool) -> str:
    rows = [
        [
            stem + pool["name"],
            pool["status"],
            pool.get("subpool_state"),
            pool["resource_usage"]["quota_limit"],
            total,
            pool["resource_usage"]["quota_used"],
            pool["resource_usage"]["quota_free"],
            *((pool.get("can_start"),) if verbose else ()),
        ]
        for stem, pool, total in tree
    ]
    header = ["Pool", "Status", "State", "Quota", "Total", "Used", "Available"]
    header += ["Can Start"] if verbose else []
    return render_table(header, rows, numbers=range(3, 8), status=1)


def _osmo_tree(tree: list[tuple[str, Any, Any]], *, verbose: bool) -> str:
    rows = [
        [
            stem + pool["name"],
            pool["status"],
            cell_text(pool.get("subpool_state")),
            str(pool["resource_usage"]["quota_limit"])
            + (f" (Total: {total})" if total is not None else ""),
            str(pool["resource_usage"]["quota_used"]),
            str(pool["resource_usage"]["quota_free"]),
            *((cell_text(pool.get("can_start")),) if verbose else ()),
        ]
        for stem, pool, total in tree
    ]
    header = (*_HEADER, "Can Start") if verbose else _HEADER
    return render_ruled(header, rows, rule="-", gap="  ", least=_LEAST)


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


def _consequences(answer: Any) -> Iterator[str]:
    for key in ("stranded", "delayed"):
        shown = (answer.get(key) or [])[:MAXIMUM_NAMED]
        for each in shown:
            yield printable(
                f"  {each['workflow_id']} ({each['priority']}, {each['gpus']} GPUs, in "
                f"{each['pool']}) {each['message']}"
            )
        yield from _rest(answer.get(f"{key}_count", 0) - len(shown))


def _rest(number: int) -> Iterator[str]:
    if number > 0:
        yield f"  and {number} more"
