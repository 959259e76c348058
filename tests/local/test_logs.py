"""What tasks write, kept line by line within bounds; and read in parts, as harmless text."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.backends.local.attempt_state import read_state
from bough.backends.logs.log_reader import LAST_BYTES, PART_BYTES, AttemptLogReader, parse
from bough.backends.logs.log_writer import (
    ERROR,
    LINE_BYTES,
    OUT,
    LineCutter,
    LogWriter,
    find_segments,
)
from bough.model.backend import LogLine
from tests.local.bench import Bench, until


def texts(reader: AttemptLogReader) -> list[str]:
    lines: list[str] = []
    position = 0
    while True:
        part = reader.read(position)
        lines += [line.text for line in part.lines]
        if part.complete:
            return lines
        assert part.position > position
        position = part.position


def cut(*chunks: bytes) -> list[str]:
    lines = LineCutter(OUT)
    records = b"".join(lines.feed(each, 5) for each in chunks) + lines.finish(6)
    return [line.text for line in parse(records)]


def test_lines_have_their_time_and_stream() -> None:
    out, error = LineCutter(OUT), LineCutter(ERROR)
    records = out.feed(b"a\nb", 1) + error.feed(b"c\n", 2) + out.finish(3)
    expected = [LogLine(1, "a"), LogLine(2, "c", error=True), LogLine(3, "b")]
    assert expected == parse(records)


@given(st.lists(st.binary(max_size=12)))
def test_how_the_output_is_cut_into_chunks_does_not_matter(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)
    assert cut(whole) == cut(*chunks)
    assert cut(whole) == cut(*(whole[i : i + 1] for i in range(len(whole))))


@given(st.binary(max_size=300))
def test_whatever_is_written_is_read_as_harmless_lines(content: bytes) -> None:
    for text in cut(content):
        assert all(each.isprintable() or each in "\t\xad" or ord(each) > 0x9F for each in text)
        assert 1 >= len(text.splitlines())


def test_both_kinds_of_line_ends_are_one_and_a_progress_bar_is_many_lines() -> None:
    assert ["a", "b", "", "10%", "20%", "done"] == cut(b"a\r\nb\r", b"\n\r\n10%\r20%\rdone\n")


def test_a_long_line_comes_in_pieces_and_no_character_is_cut() -> None:
    line = "é" * LINE_BYTES
    pieces = cut(line.encode() + b"\nnext\n")
    assert line == "".join(pieces[:-1])
    assert "next" == pieces[-1]
    assert max(len(each.encode()) for each in pieces) <= LINE_BYTES
    assert line == "".join(cut(*(line.encode()[i : i + 7] for i in range(0, len(line) * 2, 7))))


def test_what_is_no_text_is_replaced_and_colours_are_dropped() -> None:
    assert ["�x"] == cut(b"\xffx")
    assert ["red and title"] == cut(b"\x1b[31mred\x1b[0m and \x1b]0;evil\x07title")
    assert ["a�b\tc"] == cut(b"a\x00b\tc")
    assert ["�abc"] == cut("\u202eabc".encode())
    assert ["a�b"] == cut("a\u2028b".encode())


def test_a_log_is_read_part_by_part(tmp_path: Path) -> None:
    writer, lines = LogWriter(tmp_path, 2**30), LineCutter(OUT)
    wanted = [f"line {number}" for number in range(50_000)]
    writer.write(lines.feed("\n".join(wanted).encode() + b"\n", 1), 1)
    reader = AttemptLogReader(tmp_path, finished=True)
    assert len(reader.read(0).lines) < len(wanted)
    assert wanted == texts(reader)


def test_a_log_is_not_complete_before_its_task_has_ended(tmp_path: Path) -> None:
    writer, lines = LogWriter(tmp_path, 2**20), LineCutter(OUT)
    assert ((), 0, False, 0) == AttemptLogReader(tmp_path, finished=False).read(0)
    writer.write(lines.feed(b"a\n", 1), 1)
    first = AttemptLogReader(tmp_path, finished=False).read(0)
    assert (["a"], False) == ([line.text for line in first.lines], first.complete)
    writer.write(lines.feed(b"b\n", 1), 1)
    second = AttemptLogReader(tmp_path, finished=True).read(first.position)
    assert (["b"], True) == ([line.text for line in second.lines], second.complete)
    end = second.position
    assert ((), end, True, end) == AttemptLogReader(tmp_path, finished=True).read(end)


def test_a_log_keeps_the_newest_within_its_bound_and_says_what_it_dropped(tmp_path: Path) -> None:
    limit = 2**20
    writer, lines = LogWriter(tmp_path, limit), LineCutter(OUT)
    for number in range(2_000):
        writer.write(lines.feed(b"%06d %s\n" % (number, b"x" * 2_000), number), number)
        assert sum(each.stat().st_size for each in tmp_path.iterdir()) <= limit
    found = texts(AttemptLogReader(tmp_path, finished=True))
    dropped = find_segments(tmp_path)[0]
    assert f"[{dropped} bytes of the log were dropped: only the newest are kept]" == found[0]
    numbers = [int(text[:6]) for text in found[1:]]
    assert list(range(numbers[0], 2_000)) == numbers
    assert len(numbers) * 2_000 > limit * 3 // 4


def test_a_position_stays_true_when_older_parts_are_dropped(tmp_path: Path) -> None:
    writer, lines = LogWriter(tmp_path, 2**20), LineCutter(OUT)
    seen: list[int] = []
    position = 0
    for number in range(3_000):
        writer.write(lines.feed(b"%06d %s\n" % (number, b"x" * 1_000), number), number)
        while number % 100 == 99:
            part = AttemptLogReader(tmp_path, finished=False).read(position)
            if part.position == position:
                break
            seen += [int(line.text[:6]) for line in part.lines]
            position = part.position
    assert list(range(3_000)) == seen


def test_a_position_within_a_line_means_the_next_one(tmp_path: Path) -> None:
    writer, lines = LogWriter(tmp_path, 2**20), LineCutter(OUT)
    writer.write(lines.feed(b"first\nsecond\n", 1), 1)
    assert ["second"] == [
        line.text for line in AttemptLogReader(tmp_path, finished=True).read(3).lines
    ]
    end = AttemptLogReader(tmp_path, finished=True).read(0).position
    for position in range(end, end + 3):
        assert () == AttemptLogReader(tmp_path, finished=True).read(position).lines
    assert 2 == len(AttemptLogReader(tmp_path, finished=True).read(-5).lines)


@pytest.mark.parametrize("count", [0, 1, 3, 20_000, 10**9])
def test_the_last_lines_are_the_last_ones(tmp_path: Path, count: int) -> None:
    writer, lines = LogWriter(tmp_path, 2**20), LineCutter(OUT)
    wanted = [f"line {number}" for number in range(30_000)]
    for start in range(0, len(wanted), 1_000):
        chunk = wanted[start : start + 1_000]
        writer.write(lines.feed("\n".join(chunk).encode() + b"\n", 1), 1)
    part = AttemptLogReader(tmp_path, finished=True).read_last(count)
    found = [line.text for line in part.lines]
    assert wanted[len(wanted) - len(found) :] == found
    assert min(count, len(found)) == len(found)
    assert count > 20_000 or count == len(found)
    assert part.complete
    assert () == AttemptLogReader(tmp_path, finished=True).read(part.position).lines


def test_an_answer_is_bounded(tmp_path: Path) -> None:
    writer, lines = LogWriter(tmp_path, 2**25), LineCutter(OUT)
    for _ in range(300):
        writer.write(lines.feed(b"x" * 100_000 + b"\n", 1), 1)
    reader = AttemptLogReader(tmp_path, finished=True)
    assert sum(len(line.text) for line in reader.read(0).lines) <= PART_BYTES
    assert sum(len(line.text) for line in reader.read_last(10**6).lines) <= LAST_BYTES


def test_lines_that_cannot_be_written_are_counted_and_told(tmp_path: Path) -> None:
    writer, lines = LogWriter(tmp_path / "missing", 2**20), LineCutter(OUT)
    writer.write(lines.feed(b"a\nb\n", 1), 1)
    assert 2 == writer.lost_lines
    (tmp_path / "missing").mkdir()
    writer.write(lines.feed(b"c\n", 2), 2)
    assert 0 == writer.lost_lines
    found = texts(AttemptLogReader(tmp_path / "missing", finished=True))
    assert ["[2 lines were lost here] (No such file or directory)", "c"] == found


def test_what_was_lost_at_the_very_end_is_told_once(tmp_path: Path) -> None:
    writer, lines = LogWriter(tmp_path, 2**20), LineCutter(OUT)
    writer.write(lines.feed(b"a\n", 7), 7)
    part = AttemptLogReader(tmp_path, finished=True, lost_lines=1).read(0)
    assert ["a", "[1 line was lost here]"] == [line.text for line in part.lines]
    again = AttemptLogReader(tmp_path, finished=True, lost_lines=1).read(part.position)
    assert ((), True) == (again.lines, again.complete)


def test_a_log_is_read_while_its_task_runs(bench: Bench) -> None:
    attempt = bench.run_shell("echo early; sleep 1000")
    assert ["early"] == until(lambda: bench.texts(attempt))
    part = bench.backend.read_log(attempt)
    assert part is not None
    assert not part.complete


def test_nothing_is_kept_of_what_is_unknown(bench: Bench) -> None:
    assert bench.backend.read_log("nobody/0") is None


def test_a_task_that_writes_nothing_has_an_empty_log(bench: Bench) -> None:
    attempt = bench.run_shell("exit 0")
    bench.wait_over(attempt)
    assert ((), 0, True, 0) == bench.backend.read_log(attempt)
    assert ((), 0, True, 0) == bench.backend.read_log(attempt, last_lines=5)


def test_the_last_words_of_a_task_are_kept(bench: Bench) -> None:
    attempt = bench.run_shell("seq 1000; echo oops >&2; printf 'no end'; kill -9 $$")
    bench.wait_over(attempt)
    lines = bench.lines(attempt)
    out = [line.text for line in lines if not line.error]
    assert [*map(str, range(1, 1_001)), "no end"] == out
    assert ["oops"] == [line.text for line in lines if line.error]


def test_a_task_that_prints_without_end_fills_neither_disk_nor_memory(bench: Bench) -> None:
    script = (
        "import os\n"
        "chunk = (b'x' * 99 + b'\\n') * 1_000\n"
        "for _ in range(2_000): os.write(1, chunk)\n"
        "os.write(1, b'done')\n"
    )
    attempt = bench.run("/usr/bin/env", "python3", "-c", script)
    folder = bench.options.folder / "attempts" / attempt.replace("/", "-")
    worst = memory = 0
    while (seen := bench.see(attempt)) is None or seen.sight.value in ("starting", "running"):
        worst = max(worst, _size(folder))
        memory = max(memory, _peak_memory(folder / "state"))
        time.sleep(0.02)
    assert 0 == seen.exit_code
    assert worst <= bench.options.log_bytes + 64 * 1024
    assert 0 < memory < 200 * 2**20
    part = bench.backend.read_log(attempt, last_lines=1)
    assert part is not None
    assert ["done"] == [line.text for line in part.lines]


def test_ten_thousand_lines_a_second_are_all_kept(bench: Bench) -> None:
    script = (
        "import sys, time\n"
        "for second in range(20):\n"
        "    for number in range(500):\n"
        "        print(second * 500 + number, flush=True)\n"
        "    time.sleep(0.05)\n"
    )
    attempt = bench.run("/usr/bin/env", "python3", "-c", script)
    assert 0 == bench.wait_over(attempt).exit_code
    assert list(map(str, range(10_000))) == bench.texts(attempt)


def _peak_memory(path: Path) -> int:
    """What the supervisor of an attempt ever had."""
    state = read_state(path)
    if state is None or state.supervisor is None:
        return 0
    try:
        text = Path(f"/proc/{state.supervisor.pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", text)
    return 0 if found is None else int(found[1]) * 1024


def _size(folder: Path) -> int:
    total = 0
    for each in folder.glob("log.*"):
        try:
            total += each.stat().st_size
        except FileNotFoundError:
            continue
    return total
