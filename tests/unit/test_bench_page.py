"""The documentation of benchmarks shows the run that is kept, and its plot is a picture of it."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree

import msgspec

from tests.bench import page
from tests.bench.__main__ import main
from tests.bench.plot import draw
from tests.bench.report import Goal, Growth, Run

_SVG = "{http://www.w3.org/2000/svg}"


def test_the_plot_of_the_documentation_is_that_of_the_run_that_is_kept():
    assert draw(page.read_run(page.KEPT).growths) == page.PLOT.read_text()


def test_ten_times_the_cost_for_ten_times_the_size_is_as_steep_as_the_dotted_lines():
    linear = Growth("shapes", "a plan", "nodes", (100, 1_000), (0.02, 0.2))
    flat = Growth("shapes", "an end", "nodes <all>", (100, 1_000), (0.02, 0.02))
    lines = _parse(draw([linear, flat])).findall(f"{_SVG}line")

    def slope(line: ElementTree.Element) -> float:
        x1, y1, x2, y2 = (float(line.attrib[name]) for name in ("x1", "y1", "x2", "y2"))
        return (y1 - y2) / (x2 - x1) if x1 != x2 else math.inf

    (dotted, *_) = [each for each in lines if each.attrib.get("stroke-dasharray") == "1 5"]
    drawn = [each for each in lines if each.attrib.get("stroke-width") == "2"]
    assert [round(slope(dotted), 1), 0.0] == [round(slope(each), 1) for each in drawn[::2]]


def test_a_plot_without_growths_is_a_picture_as_well():
    assert f"{_SVG}svg" == _parse(draw([])).tag


def test_a_run_that_is_written_is_read_again(tmp_path: Path):
    goal = Goal("server", "submissions", "73/s", "at least 0.5", met=False)
    run = Run("a machine", "2026-11-17T08:00:00+00:00", True, [goal])
    path = tmp_path / "bench.json"
    path.write_bytes(msgspec.json.encode(run))
    assert run == page.read_run(path)
    assert "| server | submissions | 73/s | at least 0.5 | MISSED |" in page.table(run.figures)


def test_a_file_that_is_no_run_changes_nothing(tmp_path: Path, capsys):
    path = tmp_path / "other.json"
    path.write_text("{}")
    before = page.KEPT.read_bytes()
    assert [2, 2, 2] == [
        main(["page", str(path)]),
        main(["page", str(tmp_path / "none")]),
        main(["page"]),
    ]
    assert before == page.KEPT.read_bytes()
    assert "other.json: Object missing required field" in capsys.readouterr().err


def test_peers_says_what_is_missing_before_it_builds_anything(tmp_path: Path, capsys):
    assert 2 == main(["peers", "--kai", str(tmp_path)])
    assert f"--kai {tmp_path}: there is no folder pkg/scheduler/actions" in capsys.readouterr().err


def _parse(picture: str) -> ElementTree.Element:
    return ElementTree.fromstring(picture)  # noqa: S314 - our own
