"""Draws how costs grow, with both axes in powers of ten, as an SVG picture.

A line that rises as steeply as the dotted ones grows as the size does; a flat one does not grow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

from tests.bench.report import Growth

WIDTH, HEIGHT = 1060, 560
_LEFT, _TOP, _BOTTOM, _LEGEND = 70, 30, 60, 480
_COLOURS = (
    "#1f77b4",
    "#d62728",
    "#2ca02c",
    "#9467bd",
    "#ff7f0e",
    "#17becf",
    "#8c564b",
    "#e377c2",
    "#7f7f7f",
    "#bcbd22",
)


class _Axis(NamedTuple):
    """Powers of ten from the first to the last, on so many points of the picture."""

    first: int
    last: int
    begin: float
    end: float

    @classmethod
    def around(cls, values: Sequence[float], begin: float, end: float) -> _Axis:
        first = math.floor(math.log10(min(values)))
        return cls(first, max(first + 1, math.ceil(math.log10(max(values)))), begin, end)

    def at(self, value: float) -> float:
        share = (math.log10(value) - self.first) / (self.last - self.first)
        return self.begin + share * (self.end - self.begin)

    def ticks(self) -> Iterator[int]:
        yield from range(self.first, self.last + 1)


def draw(growths: Sequence[Growth]) -> str:
    """The picture; without anything to draw, an empty one."""
    body = list(_draw(growths)) if growths else []
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">'
    )
    back = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    return "\n".join((head, back, *body, "</svg>", ""))


def _draw(growths: Sequence[Growth]) -> Iterator[str]:
    sizes = _Axis.around([each for one in growths for each in one.sizes], _LEFT, WIDTH - _LEGEND)
    seconds = [each for one in growths for each in one.seconds]
    costs = _Axis.around(seconds, HEIGHT - _BOTTOM, _TOP)
    yield from _grid(sizes, costs)
    for number, each in enumerate(growths):
        style = f'stroke="{_COLOURS[number % len(_COLOURS)]}" stroke-width="2"'
        if number >= len(_COLOURS):
            style += ' stroke-dasharray="6 3"'
        points = [
            (sizes.at(size), costs.at(cost))
            for size, cost in zip(each.sizes, each.seconds, strict=True)
        ]
        for before, after in pairwise(points):
            yield _line(before, after, style)
        for x, y in points:
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" {style}/>'
        x, y = WIDTH - _LEGEND + 25, _TOP + 12 + 22 * number
        yield _line((x, y - 4), (x + 20, y - 4), style)
        yield _text((x + 26, y), f"{each.what}, by {each.of}")


def _grid(sizes: _Axis, costs: _Axis) -> Iterator[str]:
    for power in sizes.ticks():
        x = sizes.at(10**power)
        yield _line((x, costs.begin), (x, costs.end), 'stroke="#ddd"')
        yield _text((x, costs.begin + 18), f"{10**power:,}", "middle")
    for power in costs.ticks():
        y = costs.at(10.0**power)
        yield _line((sizes.begin, y), (sizes.end, y), 'stroke="#ddd"')
        yield _text((sizes.begin - 8, y + 4), _seconds(power), "end")
        # A line that grows as the size does, as far as it is in the picture.
        more = min(sizes.last - sizes.first, costs.last - power)
        begin = (sizes.at(10**sizes.first), y)
        end = (sizes.at(10 ** (sizes.first + more)), costs.at(10.0 ** (power + more)))
        yield _line(begin, end, 'stroke="#999" stroke-dasharray="1 5"')
    yield _text(((sizes.begin + sizes.end) / 2, HEIGHT - 16), "how many there are", "middle")
    yield _text((_LEFT, _TOP - 12), "CPU time")


def _line(begin: tuple[float, float], end: tuple[float, float], style: str) -> str:
    (x1, y1), (x2, y2) = begin, end
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {style}/>'


def _text(at: tuple[float, float], text: str, anchor: str = "start") -> str:
    x, y = at
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _seconds(power: int) -> str:
    for least, unit in ((0, "s"), (-3, "ms"), (-6, "µs")):
        if power >= least:
            return f"{10 ** (power - least):,} {unit}"
    return f"10^{power} s"
