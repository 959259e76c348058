"""The long tests run rarely: that they can be found at all is tested with the others."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_all_that_make_soak_names_can_be_collected():
    recipe = (ROOT / "Makefile").read_text().partition("\nsoak:")[2].partition("\n\n")[0]
    named = [each for each in shlex.split(recipe, comments=False) if each.startswith("tests/")]
    found = [path for each in named for path in sorted(ROOT.glob(each))]
    # The others are run by `make test`, with fewer examples.
    found = [each for each in found if "soak" in each.name]
    assert {"soak", "soak_kills.py", "soak_histories.py"} <= {each.name for each in found}

    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0"]
    command += [str(path) for path in found]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stdout[-3_000:] + done.stderr[-3_000:]
    # Those that are for both databases have both.
    for kind in ("sqlite", "postgresql"):
        assert f"soak/test_guarantee_law.py::{_LAW}[{kind}]" in done.stdout


_LAW = "test_no_start_takes_what_is_promised_and_every_head_that_fits_starts"
