"""Plain text tables and trees. Must not know what is in them."""

from __future__ import annotations

from collections.abc import Sequence

GAP = "  "


def render_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int] = ()
) -> str:
    """Lay out rows under a header; the columns in `numbers` are aligned to the right."""
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(_line(line, widths, numbers) for line in lines)


def tree_stems(depths: Sequence[int]) -> list[tuple[str, str]]:
    """For nodes in drawing order: what stands before the name, and before lines that follow it."""
    stems: list[tuple[str, str]] = []
    #: From the last node backwards: on which levels another node follows below the same parent.
    follows: list[bool] = []
    for index in range(len(depths) - 1, -1, -1):
        depth = depths[index]
        has_children = index + 1 < len(depths) and depths[index + 1] > depth
        del follows[depth + 1 :]
        follows.extend([False] * (depth + 1 - len(follows)))
        before = "".join("│  " if more else "   " for more in follows[1:depth])
        own, below = "", ""
        if depth:
            own, below = ("├─ ", "│  ") if follows[depth] else ("└─ ", "   ")
        stems.append((before + own, before + below + ("│" if has_children else "")))
        follows[depth] = True
    stems.reverse()
    return stems


def _line(cells: Sequence[str], widths: Sequence[int], numbers: Sequence[int]) -> str:
    padded = [
        cell.rjust(width) if column in numbers else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return GAP.join(padded).rstrip()
