"""Break the program in places that matter, one at a time: the tests must notice each.

    make mutations               all of them, some minutes
    make mutations ONLY=cordon   those whose name has the word

A mutation is a text that stands exactly once below src/bough, wherever its module is moved, and
what it becomes. It is made in a copy of the tree; the tests that are named there must fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PARTS = ("src", "tests", "scenarios", "scripts", "conformance", "docs", "pyproject.toml")
#: The exit code of pytest where tests ran and some of them failed.
NOTICED = 1
#: Tests that take longer, on a very busy machine, are ended and say nothing about their mutation.
LONGEST_S = 2_400


class Mutation(NamedTuple):
    """One thing that goes wrong."""

    name: str
    before: str
    after: str
    #: What pytest is asked to run, and must fail.
    tests: str


MUTATIONS = (
    Mutation(
        "an undo is dropped",
        "            else:\n                holder[key] = before\n",
        "            else:\n                pass\n",
        "tests/unit/test_undo.py",
    ),
    Mutation(
        "the borrowing limit is ignored",
        "        if account.borrowing_limit is not None:\n"
        "            allowed = kept + account.subtree_quota - account.usage",
        "        if False:\n            allowed = kept + account.subtree_quota - account.usage",
        "tests/unit/test_quota_tree.py",
    ),
    Mutation(
        "the lending limit is ignored",
        "account.local_quota = 0 if limit is None else max(0, account.subtree_quota - limit)",
        "account.local_quota = 0",
        "tests/unit/test_quota_tree.py",
    ),
    Mutation(
        "archive: what still holds a node is moved",
        "        ~left.exists(),\n",
        "",
        "tests/store/test_archive.py",
    ),
    Mutation(
        "archive: the GPU time of what is archived is forgotten",
        "        (ARCHIVED_STRETCHES, ARCHIVE, archived),\n",
        "",
        "tests/store/test_archive.py",
    ),
    Mutation(
        "archive: what is not over is dropped",
        "        for each in past:\n            _check_over(each)\n",
        "",
        "tests/store/test_archive.py",
    ),
    Mutation(
        "fair shares: what gave way takes back",
        "frozenset(self.progress(name).gave_way_to) if self.policy.gives_way_once else _NONE",
        "_NONE",
        "tests/unit/test_cycle_fair.py",
    ),
    Mutation(
        "fair shares: what was promised is not given",
        "progress.promised if copy.policy.nominated_first else ()",
        "()",
        "tests/unit/test_cycle_fair.py",
    ),
    Mutation(
        "fair shares: what is idle is divided evenly",
        "got[at] += step * heavy[at]",
        "got[at] += step",
        "tests/unit/test_fair_now.py",
    ),
    Mutation(
        "fair shares: what is moved is not lifted again",
        "(each.name in outcome.moved or _is_undecided(outcome, each))",
        "_is_undecided(outcome, each)",
        "tests/unit/test_cycle_moves.py",
    ),
    Mutation(
        "fair shares: what stays after all is waited for",
        "                    self._wait_no_more(claim.name)\n",
        "                    pass\n",
        "tests/unit/test_cycle_moves.py",
    ),
    Mutation(
        "moves: what moves loses its quota",
        "        copy.use(claim, usage, waits=True)\n",
        "",
        "tests/unit/test_cycle_moves.py",
    ),
    Mutation(
        "moves: growth that was promised is taken for a move",
        "[pod for pod in claim.ending if known.nominated and pod.name in known.places]",
        "[pod for pod in claim.gang.pods if known.nominated and pod.name in known.places]",
        "tests/unit/test_cycle_moves.py",
    ),
    Mutation(
        "moves: a gang stands first for all that it may grow",
        "if not known.nominated or not copy.has_changed(claim):",
        "if True:",
        "tests/unit/test_cycle_moves.py",
    ),
    Mutation(
        "fair shares: pod sets take victims while free room is given",
        "if not takes and judgement.outlook is not Outlook.AT_ONCE:",
        "if not takes and judgement.outlook is Outlook.NOTHING:",
        "tests/unit/test_cycle_free_first.py",
    ),
    Mutation(
        "fair shares: what ends in a cycle still counts for the largest share",
        "                self._weigh(claim, (pod,), add=False)\n",
        "",
        "tests/property/test_dominant_share.py",
    ),
    Mutation(
        "fair shares: the largest share is not asked for",
        "taken = dominant.rank(seat.node, contender.queue, contender.request)",
        "taken = (False, 0)",
        "tests/scenarios/test_schedule_scenarios.py",
    ),
    Mutation(
        "fair shares: the first of a strict queue is passed",
        "copy.rules.preemptible_takes_victims and not strict",
        "copy.rules.preemptible_takes_victims",
        "tests/property/test_mixed_forms.py",
    ),
    Mutation(
        "a GPU is given twice",
        "for each in self._numbers.get(node, ()) if (node, each) not in self._holders]",
        "for each in self._numbers.get(node, ())]",
        "tests/local/test_backend_gangs.py",
    ),
    Mutation(
        "what is preempted is not queued again",
        "(TaskEvent.RESCHEDULE if own_fault else cause, code, acted, again=True)",
        "(TaskEvent.RESCHEDULE if own_fault else cause, code, acted)",
        "tests/store/test_scenarios_scheduling.py -k 149",
    ),
    Mutation(
        "the permission of routes is not checked",
        "    _authorise(authenticator.site, actor, declared, connection.path_params)\n",
        "",
        "tests/api/test_matrix.py",
    ),
    Mutation(
        "the permission to cancel a workflow is not checked",
        "    authorise(actor, action, resource_of(found or pool), site.role_names)\n",
        "",
        "tests/store/test_scenarios_access.py -k 133",
    ),
    Mutation(
        "the end of an attempt is not on the disk",
        "            os.fsync(self._descriptor)\n",
        "            pass\n",
        "tests/local/test_attempt_state.py",
    ),
    Mutation(
        "an answered change is not on the disk",
        "PRAGMA synchronous = FULL",
        "PRAGMA synchronous = OFF",
        "tests/store/test_write_batches.py",
    ),
    Mutation(
        "a subpool that drains keeps its quota",
        "return self.quota if self.state is SubpoolState.ACTIVE else 0",
        "return self.quota",
        "tests/store/test_scenarios_queues.py -k 009",
    ),
    Mutation(
        "half a gang starts",
        "        missing = root.minimum - has\n",
        "        missing = max(1, (root.minimum - has) // 2)\n",
        "tests/unit/test_gang_demand.py tests/scenarios/test_schedule_scenarios.py",
    ),
    Mutation(
        "the tie-break of lines is dropped",
        "waits_since(gang, policy), gang.uid, gang.name)",
        'waits_since(gang, policy), gang.uid, "")',
        "tests/unit/test_cycle_gangs.py -k name_decides",
    ),
    Mutation(
        "a plan for an older state is applied",
        "        if not setting_store.raise_if(connection, setting_store.VERSION, plan.version):\n",
        "        if not setting_store.raise_counter(connection, setting_store.VERSION):\n",
        "tests/store/test_races.py -k too_late",
    ),
    Mutation(
        "tokens are kept as they are",
        "    return hashlib.sha256(secret.encode()).hexdigest()\n",
        "    return secret\n",
        "tests/store/test_people.py -k token",
    ),
    Mutation(
        "a token that has expired is taken",
        "    if expires_ms <= site.clock.now_ms():\n",
        "    if expires_ms <= 0:\n",
        "tests/store/test_people.py -k token",
    ),
    Mutation(
        "a submission counts on a pool that has changed",
        "    if version == known.version:\n",
        "    if True:\n",
        "tests/store/test_submission_cost.py",
    ),
    Mutation(
        "rights of before a change are kept for later",
        "        if counted.access != access:\n",
        "        if False:\n",
        "tests/store/test_submission_cost.py",
    ),
    Mutation(
        "what was told is told again",
        "record_store.finish_outbox(connection, done)\n",
        "pass\n",
        "tests/store/test_outbox.py",
    ),
    Mutation(
        "time limits are ignored",
        "    if limit_s is None or since_ms is None or over:\n",
        "    if limit_s is None or since_ms is not None or over:\n",
        "tests/store/test_timeouts.py -k sqlite",
    ),
    Mutation(
        "a plan comes true without its events",
        "    record_store.add_events("
        "connection, [event for change in changes for event in change.events()])\n",
        "",
        "tests/store/test_scenarios_borrowing.py -k eviction",
    ),
    Mutation(
        "what fails half-way stays",
        "            if self.parts:\n                self._transaction.commit()\n",
        "            self._transaction.commit()\n",
        "tests/store/test_write_batches.py",
    ),
    Mutation(
        "cordons are ignored",
        "matched & tolerated & ~self.cordoned",
        "matched & tolerated",
        "tests/unit/test_place_matching.py tests/store/test_nodes.py",
    ),
    Mutation(
        "a required topology is ignored",
        "    widest = 0 if required is None else required\n",
        "    widest = 0\n",
        "tests/unit/test_place_domains.py tests/unit/test_place_gang.py",
    ),
    Mutation(
        "the minimum of subgroups is ignored",
        "minimum = everything if source.minimum is None else source.minimum",
        "minimum = everything",
        "tests/unit/test_gang_predicate.py tests/unit/test_gang_demand.py",
    ),
    Mutation(
        "what is guaranteed is reclaimed",
        "        return claim.preemptible and self._has_run_long_enough(claim, reach)\n",
        "        return self._has_run_long_enough(claim, reach)\n",
        "tests/unit/test_cycle_kai.py",
    ),
    Mutation(
        "the limit of users is ignored",
        "    if not limits or claim.preemptible or not claim.gang.owner:\n",
        "    if limits or not limits:\n",
        "tests/store/test_scenarios_admission.py -k user",
    ),
    Mutation(
        "SQLite does not wait for the disk",
        'cursor.execute("PRAGMA synchronous = FULL")',
        'cursor.execute("PRAGMA synchronous = OFF")',
        "tests/e2e/test_power.py -k sqlite",
    ),
    Mutation(
        "PostgreSQL need not wait for the disk",
        '        event.listen(engine, "connect", _commit_to_disk)\n',
        "",
        "tests/store/test_write_batches.py -k configured",
    ),
    Mutation(
        "the end of a task does not wait for the disk",
        "        if durably:\n            os.fsync(self._descriptor)\n",
        "",
        "tests/local/test_power.py",
    ),
    Mutation(
        "the log of a task does not wait for the disk",
        "                _sync(segment_path(self._folder, start))\n",
        "                pass\n",
        "tests/local/test_power.py",
    ),
    Mutation(
        "the results of a task do not wait for the disk",
        "        if _LIBC.syncfs(descriptor):\n",
        "        if descriptor < 0:\n",
        "tests/local/test_power.py",
    ),
    Mutation(
        "secrets and keys do not wait for the disk",
        "                file.flush()\n                os.fsync(descriptor)\n",
        "                pass\n",
        "tests/local/test_power.py",
    ),
    Mutation(
        "the names of secrets and keys do not wait for the disk",
        "    if durably:\n        sync_folder(path.parent)\n",
        "",
        "tests/local/test_power.py",
    ),
    Mutation(
        "the identity of a machine does not wait for the disk",
        '        write_whole(file, f"{found}\\n".encode())\n',
        '        write_whole(file, f"{found}\\n".encode(), durably=False)\n',
        "tests/local/test_power.py",
    ),
    Mutation(
        "orders of an earlier lease are followed",
        "not order.expired and (order.opening, order.number) >= _read(folders)",
        "not order.expired",
        "tests/local/test_backend.py -k supervisors_begin",
    ),
    Mutation(
        "a server that has lost its lease goes on writing",
        'connection.execute(_STAYS_MINE, {"mine": number}).first() is None',
        "False",
        "tests/store/test_lease.py -k sqlite",
    ),
    Mutation(
        "credentials are stored as they are sent",
        "AESGCM(self._keys[0]).encrypt(nonce, plain, bound_to)",
        "plain",
        "tests/store/test_credentials.py -k sqlite",
    ),
    Mutation(
        "a credential can be given to another user in the database",
        '("credential", credential.user, credential.name, credential.type.value)',
        '("credential", credential.name, credential.type.value)',
        "tests/store/test_credentials.py -k sqlite",
    ),
    Mutation(
        "there is no reserve for a full disk",
        "                    keep_reserve(self._store)\n",
        "",
        "tests/e2e/test_full_disk.py -k database",
    ),
    Mutation(
        "a connection to Kubernetes that may not be verified is made",
        "    if cluster.insecure_skip_tls_verify:\n",
        "    if False:\n",
        "tests/unit/test_kubeconfig.py",
    ),
    Mutation(
        "a version that the apiserver forgot is watched again",
        'self._kind.plural, gone.message)\n                self._version = ""\n',
        "self._kind.plural, gone.message)\n",
        "tests/unit/test_kube_watching.py -k too_old_makes",
    ),
    Mutation(
        "a pod is given up that an apiserver forbids while it starts",
        "            if not self._client.is_ready():\n",
        "            if False:\n",
        "tests/unit/test_kubernetes_creation.py -k forbidden",
    ),
    Mutation(
        "under another lease a pod is created that was not ordered under it",
        "                        each.objects = None\n",
        "                        pass\n",
        "tests/unit/test_kubernetes_creation.py -k another_lease",
    ),
    Mutation(
        "on Kubernetes what failed stays on the claim",
        "return self.over and not self.sight.completed",
        "return False",
        "tests/unit/test_kubernetes_data.py",
    ),
    Mutation(
        "what does not start ends before that is stored",
        "        change.release(task, stuck_reason(observation.fault), observation.message)\n",
        "",
        "tests/store/test_states.py -k stuck",
    ),
)


def main() -> int:
    only = os.environ.get("ONLY", "")
    chosen = [each for each in MUTATIONS if only in each.name]
    missed = 0
    with tempfile.TemporaryDirectory(prefix="bough-mutations-") as folder:
        copy = Path(folder)
        for part in PARTS:
            source = ROOT / part
            copying = shutil.copytree if source.is_dir() else shutil.copyfile
            copying(source, copy / part)
        for mutation in chosen:
            start_s = time.monotonic()
            ended = run(copy, mutation)
            # Below 0: a signal that the broken program sent has ended the tests.
            noticed = ended is not None and (ended == NOTICED or ended < 0)
            word = "noticed" if noticed else f"MISSED ({_reason(ended)})"
            missed += not noticed
            say(f"{word}: {mutation.name} [{time.monotonic() - start_s:.0f} s]")
    say(f"{len(chosen) - missed} of {len(chosen)} noticed")
    return 1 if missed else 0


def _reason(ended: int | None) -> str:
    return "the tests took too long" if ended is None else f"pytest ended with {ended}"


def run(copy: Path, mutation: Mutation) -> int | None:
    """How pytest ended with one thing wrong; `None`: it took too long. The copy is put back."""
    path = find(copy / "src" / "bough", mutation)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(mutation.before, mutation.after), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [*command, *mutation.tests.split()],
            cwd=copy,
            env=environment,
            capture_output=True,
            check=False,
            timeout=LONGEST_S,
        )
        return done.returncode
    except subprocess.TimeoutExpired:
        return None
    finally:
        path.write_text(text, encoding="utf-8")


def find(folder: Path, mutation: Mutation) -> Path:
    """The one module that has the text."""
    found = [
        (path, count)
        for path in sorted(folder.rglob("*.py"))
        if (count := path.read_text(encoding="utf-8").count(mutation.before))
    ]
    if len(found) != 1 or found[0][1] != 1:
        places = ", ".join(f"{count} in {path.relative_to(folder)}" for path, count in found)
        sys.exit(f"the text of '{mutation.name}' must stand once: {places or 'it is not there'}")
    return found[0][0]


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
