"""`python -m conformance CASES.json...`: one JSON line for each case on standard output.

What a case expects is never read: the answers must come from the engine alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from conformance import groups

#: What the recording engine decided; taken out of each case before it is answered.
RECORDED = ("expected", "out", "kai", "reason", "upstream_d5bc503")


def main(paths: Iterable[str]) -> int:
    """Answer every case of every file."""
    for path in paths:
        group = Path(path).name.removesuffix(".json")
        with Path(path).open(encoding="utf-8") as handle:
            cases = json.load(handle)["cases"]
        for case in cases:
            print(json.dumps(answer(group, case), sort_keys=True))
    return 0


def answer(group: str, case: dict[str, Any]) -> dict[str, Any]:
    """One case's answer; what we do not have is said, a crash is shown as one."""
    question = {key: value for key, value in case.items() if key not in RECORDED}
    for step in question.get("steps", ()):
        step.pop("state_after", None)
        step.pop("error", None)
    translate = groups.ANSWERS.get(group)
    if translate is None:
        return {"id": case["id"], "unsupported": f"no rule for {group} yet"}
    try:
        return {"id": case["id"], **translate(question)}
    except Exception as error:  # one broken case must not hide the others
        return {"id": case["id"], "actual": {}, "crash": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    if len(sys.argv) < 2 or not all(Path(each).is_file() for each in sys.argv[1:]):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
