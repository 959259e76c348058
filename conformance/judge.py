"""`python -m conformance.judge CASES`: answer all recorded cases and hold us to what we promise.

Groups that are promised must reach their figure; the others are only reported. Where the cases are
not present (they are not part of the product) this says so and does nothing.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

#: By group: the least part of the cases that are answered, in percent, that must pass, and how many
#: may be answered "unsupported". docs/conformance.md gives the reason for each that does not pass.
PROMISES: dict[str, tuple[int, int]] = {
    "kai/allocate": (100, 4),
    "kai/allocate_subgroups": (100, 0),
    "kai/consolidation": (96, 0),
    "kai/elastic": (96, 0),
    "kai/gang": (100, 0),
    "kai/gen_allocate": (100, 0),
    "kai/gen_allocate_subgroups": (100, 0),
    "kai/gen_allocate_topology": (75, 0),
    "kai/gen_consolidation": (86, 0),
    "kai/gen_cycle": (100, 0),
    "kai/gen_preempt": (90, 0),
    "kai/gen_reclaim": (85, 0),
    "kai/preempt": (100, 0),
    "kai/reclaim": (97, 0),
    "kai/reclaim_subgroups": (100, 0),
    "kai/seed_min_sub_group": (100, 0),
    "kai/stale_gang": (100, 0),
    "kai/topology": (100, 0),
    "kai/unit_can_reclaim": (100, 0),
    "kai/unit_fair_share": (100, 0),
    "kai/unit_min_runtime": (100, 0),
    "kai/unit_pod_set_order": (100, 0),
    "kai/unit_queue_order": (100, 0),
    "kai/unit_reclaim_strategy": (100, 0),
    "kai/unit_reclaimable": (100, 0),
    "kai/unit_subgroup_order": (100, 0),
    "kai/unit_tasks_to_allocate": (91, 0),
    "kai/unit_tasks_to_evict": (80, 0),
    "kai/unit_topology_subset_nodes": (85, 0),
    "kai/unit_validate_pod_group_spec": (100, 0),
    "kai/unit_validate_subgroups": (100, 0),
    "kai/up_min_sub_group": (100, 0),
    "kueue/entry_order": (100, 0),
    "kueue/fair_share": (100, 0),
    "kueue/flavor_assign": (100, 3),
    "kueue/hierarchy_ops": (100, 0),
    "kueue/hierarchy_tree": (100, 0),
    "kueue/partial_search": (100, 0),
    "kueue/preempt_classic": (100, 0),
    "kueue/preempt_fair": (100, 0),
    "kueue/preempt_fair_order": (100, 0),
    "kueue/preempt_hier": (100, 0),
    "kueue/preempt_order": (100, 2),
    "kueue/preempt_policy": (100, 0),
    "kueue/quota_available": (100, 0),
    "kueue/quota_snapshot": (96, 0),
    "kueue/random_preempt_classic": (100, 0),
    "kueue/random_preempt_fair": (100, 0),
    "kueue/random_quota": (100, 0),
    "kueue/random_schedule": (100, 0),
    "kueue/random_schedule_fair": (100, 0),
    "kueue/reserve": (100, 0),
    "kueue/schedule": (98, 5),
    "kueue/schedule_fair": (95, 0),
    "kueue/schedule_recompute": (100, 0),
}
LINE = re.compile(r"^(\S+): passed (\d+) of (\d+), (\d+) unsupported$")


def main(folder: Path) -> int:
    """Judge every file below the folder; 1 where a promise is broken."""
    compare = folder / "compare.py"
    if not compare.is_file():
        print(f"SKIPPED: there are no recorded cases at {folder}")
        return 0
    broken = 0
    total_passed = total_failed = 0
    for path in sorted(folder.glob("*/*.json")):
        group = f"{path.parent.name}/{path.stem}"
        verdict = _judge(compare, path)
        passed, total, unsupported = verdict[0]
        promise, excused = PROMISES.get(group, (0, total))
        kept = unsupported <= excused and passed * 100 >= promise * (total - unsupported)
        word = _word(group, kept=kept)
        print(f"{group:40} {passed:4} of {total:4} {unsupported:4} unsupported {word}")
        if group in PROMISES:
            total_passed += passed
            total_failed += 0 if kept else 1
        if not kept:
            broken += 1
            print("\n".join(verdict[1][:10]))
    print(f"{total_passed} passed, {total_failed} failed")
    return 1 if broken else 0


def _word(group: str, *, kept: bool) -> str:
    if group not in PROMISES:
        return ""
    return "as promised" if kept else "BROKEN PROMISE"


def _judge(compare: Path, path: Path) -> tuple[tuple[int, int, int], list[str]]:
    """What the judge says of our answers to one file: the counts, and what failed."""
    answers = subprocess.run(
        [sys.executable, "-m", "conformance", str(path)], capture_output=True, check=True
    )
    result = subprocess.run(
        [sys.executable, str(compare), str(path)],
        input=answers.stdout,
        capture_output=True,
        check=False,
    )
    lines = result.stdout.decode().splitlines()
    match = LINE.match(lines[0]) if lines else None
    if match is None:
        sys.exit(f"the judge did not understand our answers to {path}: {result.stderr.decode()}")
    return (int(match[2]), int(match[3]), int(match[4])), lines[1:]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/cases")))
