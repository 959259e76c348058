"""Counts the test files that import internals: `python -m tests.internals`, with `-v` by name.

Tests stand at the surface where they can: HTTP, a command, `plan`, files of scenarios. They import
what is deeper where that is an algorithm of its own. Other imports make a test fail when a module
moves, though nothing that people see has changed; those are counted here, and get fewer.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

_FOLDER = Path(__file__).parent
#: Algorithms: quota, placement, victims, plans; supervisors and sandboxes; pods of a cluster; the
#: protocols of Kubernetes, of object stores and of WebSockets; states of workflows; queries.
ALGORITHMS = (
    "backends", "core", "kube", "kube_webhook", "pod_grouper", "pod_scheduler", "store",
    "object_stores", "websocket", "control.workflows.lifecycle",
    "control.workflows.workflow_changes",
)  # fmt: skip
#: What people and programs use, and the types that these speak of.
SURFACES = (
    "Client", "api", "cli.main", "client", "errors", "model", "server.application", "tools",
    "version",
)  # fmt: skip


def deep_imports(path: Path) -> Iterator[str]:
    """The modules of Bough that a test file imports, without those of a surface."""
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
        elif isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        inside = [each.removeprefix("bough.") for each in names if each.startswith("bough.")]
        if inside and not any(_is_in(each, SURFACES) for each in inside):
            yield inside[0]


def _is_in(name: str, modules: tuple[str, ...]) -> bool:
    return any(name == each or name.startswith(f"{each}.") for each in modules)


def main(arguments: list[str]) -> None:
    files = sorted(_FOLDER.rglob("test_*.py"))
    found = {path: sorted(set(deep_imports(path))) for path in files}
    algorithms = [
        path for path, names in found.items() if any(_is_in(each, ALGORITHMS) for each in names)
    ]
    others = [path for path, names in found.items() if names and path not in algorithms]
    lines = [
        f"{len(files)} test files",
        f"{len(algorithms)} import an algorithm",
        f"{len(others)} import other internals",
    ]
    if "-v" in arguments:
        lines += [f"  {path.relative_to(_FOLDER)}: {', '.join(found[path])}" for path in others]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
