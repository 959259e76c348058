"""Logs of pods go on where they were left, without gaps or doubles."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from bough.backends.kubernetes.log_follower import LogSink, read_line
from bough.backends.logs.log_reader import AttemptLogReader

#: Lines of a few seconds, many of one moment and with the same text.
MOMENTS = st.lists(st.integers(0, 30), min_size=1, max_size=30).map(sorted)


def written(moments: list[int]) -> list[bytes]:
    """Lines as the apiserver gives them, ten in a second."""
    return [
        b"2026-01-01T00:00:%02d.%d00000000Z line %d\n" % (each // 10, each % 10, number % 3)
        for number, each in enumerate(moments)
    ]


def since(lines: list[bytes], second: int) -> list[bytes]:
    return [line for line in lines if read_line(line)[0] >= second * 1_000]


@given(MOMENTS, st.lists(st.integers(0, 30), max_size=12))
def test_a_broken_log_goes_on_without_gaps_or_doubles(moments, breaks):
    lines = written(moments)
    with tempfile.TemporaryDirectory() as folder:
        for broken in (*sorted(breaks), len(lines)):
            sink = LogSink(Path(folder), 1 << 20)
            for line in since(lines[:broken], sink.since_s):
                sink.add(line)
            sink.close()
        found = AttemptLogReader(Path(folder), finished=True).read(0).lines

    expected = [(read_line(line)[0], read_line(line)[1].decode().rstrip("\n")) for line in lines]
    assert expected == [(each.at_ms, each.text) for each in found]
