"""The loop's own view of the store and the memo of its plan, which questions are answered from.

The loop goes first: it waits for the one question that is being answered, and no longer. Questions
about one plan share one cycle that was played; users have their turns one after the other. Where a
loop decides, a question is answered from the first plan after it was asked, or from the last where
nothing has changed since; elsewhere a view is taken for it. What would help is searched for beside
the loop, one search at a time and for a bounded time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter_ns, thread_time

import msgspec

from bough.control.fair_turns import FairTurns
from bough.control.pools.node_shares import QueueStanding, Standings
from bough.control.pools.pool_setup import read_pool_setup
from bough.control.pools.pool_words import PoolWords
from bough.control.pools.stand_in_nodes import with_stand_ins
from bough.control.scheduling.other_pods import Others
from bough.control.scheduling.plan_questions import Answers, GangAnswer, Question
from bough.control.scheduling.pool_remedies import PoolSource
from bough.control.scheduling.snapshot import SnapshotBuilder, SnapshotView
from bough.control.site import Site
from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import plan
from bough.core.explain.certificate import ExplainedCycle
from bough.core.explain.evictions import excess_texts
from bough.core.explain.growth import explain_growth
from bough.core.explain.node_shares import Standing, standings
from bough.core.explain.remedies import remedies
from bough.core.quota.fair_now import write_part
from bough.errors import Busy
from bough.formats.certificates import certificate_answer, remedy_list
from bough.model.plan import Plan
from bough.model.quota import TreeNode
from bough.model.reason import WaitReason
from bough.model.words import OBJECT_WORDS, Words

#: How long a question waits for its turn, and for the plan that is due.
TURN_S = 20
PLAN_S = 5.0
#: How many plans are made to find remedies of one kind, and how long all of them take of the CPU.
MOST_PLANS = 20
SEARCH_S = 10.0
_BUSY = "Too many ask why their work waits; try again."


class Decided(msgspec.Struct, frozen=True):
    """A plan, and what it was made of."""

    view: SnapshotView
    plan: Plan
    #: By gang that ends for others that reclaim: why.
    excesses: dict[str, str]
    #: How long the core took.
    planned_us: int


class LivePlan:
    """The last view of the store, with the memo of the plan that was made of it."""

    def __init__(
        self, site: Site, ring: Callable[[], None] = lambda: None, others: Others = dict
    ) -> None:
        """ring:  asks for a plan that is due. others:  what others hold of the nodes."""
        self._site = site
        self._others = others
        self._ring = ring
        #: Whether a loop plans as soon as something changes.
        self.followed = False
        self._changed = threading.Condition()
        self._busy = self._loop_waits = False
        self._questions = FairTurns(1, 1, _BUSY)
        self._searches = FairTurns(1, 1, _BUSY)
        self._plans = 0
        self._forget()

    # For the loop

    def reset(self) -> None:
        """Drop everything that is kept."""
        with self._for_loop():
            self._forget()

    def look(self) -> bool:
        """See what is new in the store; whether a plan would be made of something else."""
        with self._for_loop():
            return self.builder.look() or self._is_ahead

    def expect(self, version: int) -> None:
        """The next version is the loop's own plan, and nothing in it is news."""
        with self._for_loop():
            self.builder.expect(version)

    def decide(self) -> Decided:
        """Plan for what the store says now."""
        with self._for_loop():
            view = self._take()
            started = perf_counter_ns()
            decided = plan(view.snapshot, view.policy, self._memo)
            planned_us = (perf_counter_ns() - started) // 1_000
            decided = msgspec.structs.replace(decided, version=view.snapshot.version)
            excesses = excess_texts(self._memo, decided, PoolWords(self._site))
            self._is_ahead = False
            self._plans += 1
            return Decided(view, decided, excesses, planned_us)

    # For questions

    def ask(self, question: Question) -> Answers:
        """What the plan of now says about each gang."""
        with self._for_question(question.user):
            plans = self._plans
            if not self.followed:
                self._take_for_question()
            seen = self._see(question) if self._is_current() else None
        if seen is None:
            self._await_plan(plans)
            with self._for_question(question.user):
                if self._plans == plans:
                    self._take_for_question()
                seen = self._see(question)
        if not question.growing and question.pools is None:
            return seen.answers
        with self._searches.turn(question.user, TURN_S):
            return self._search(question, seen)

    def standings(self, user: str) -> Standings:
        """What the nodes of the quota tree take and could have, by what the loop decides by."""
        with self._for_question(user):
            if not self.followed or not self._is_current():
                self._take_for_question()
            self._close()
            view = self._view or self._take()
            with self._memo.dropped_on_error():
                found = standings(self._memo.refresh(view.snapshot, view.policy))
        return tuple(_tell(node, each) for node, each in found.items())

    def _is_current(self) -> bool:
        """Whether the last view is what the store says, or was just taken."""
        if not self.followed:
            return True
        return self._view is not None and not self._is_ahead and not self.builder.look()

    def _await_plan(self, plans: int) -> None:
        """Let the loop plan what is due; it may be held up."""
        self._ring()
        with self._changed:
            self._changed.wait_for(lambda: self._plans != plans or not self.followed, PLAN_S)

    def _take_for_question(self) -> None:
        self._close()
        try:
            # Where another server decides, nothing else says so.
            self.builder.reread_nominated()
            self._take()
        except BaseException:
            # Nothing is kept that may be half done.
            self._forget()
            raise
        self._is_ahead = True

    def _see(self, question: Question) -> _Seen:
        """The certificates, from the cycle that all questions about this view share."""
        view, words = self._view or self._take(), self._words(question)
        if self._cycle is None:
            self._cycle = ExplainedCycle(view.snapshot, view.policy, self._memo)
        answers: Answers = {}
        for gang in question.waiting:
            entry = view.entries.get(gang)
            if entry is not None and entry.pool in view.offline:
                # Whatever a plan says of it, nothing can start there.
                answers[gang] = GangAnswer(WaitReason.BACKEND.value, view.offline[entry.pool])
                continue
            found = self._cycle.certificate(gang, words)
            if found is not None:
                told = certificate_answer(found, words)
                answers[gang] = GangAnswer(found.reason, found.sentence, told)
        return _Seen(view, answers, self._cycle.plan if question.growing else None)

    def _words(self, question: Question) -> Words:
        return OBJECT_WORDS if question.queues else PoolWords(self._site)

    # Beside the loop

    def _search(self, question: Question, seen: _Seen) -> Answers:
        """The same, with what takes longer; a snapshot does not change."""
        words, until_s = self._words(question), thread_time() + SEARCH_S
        snapshot, policy = seen.view.snapshot, seen.view.policy
        answers = dict(seen.answers)
        for gang in question.growing:
            wanted = explain_growth(snapshot, policy, gang, seen.plan, words)
            if wanted is not None:
                told = certificate_answer(wanted.certificate, words)
                answers[gang] = GangAnswer(wanted.reason, wanted.sentence, told)
        if question.pools is None:
            return answers
        with self._site.store.read() as connection:
            config = with_stand_ins(read_pool_setup(connection), self._site.is_placed_elsewhere)
        site, allowed = self._site, set(question.pools)
        source = PoolSource(snapshot, config, site.namespace, site.prefix, allowed)
        for gang in question.waiting:
            if gang in answers and answers[gang].reason != WaitReason.BACKEND.value:
                found = remedies(
                    snapshot,
                    policy,
                    gang,
                    most_plans=MOST_PLANS,
                    source=source,
                    go_on=lambda: thread_time() < until_s,
                )
                helpful = remedy_list(found, words)
                answers[gang] = msgspec.structs.replace(answers[gang], remedies=helpful)
        return answers

    # Both

    def _take(self) -> SnapshotView:
        self._close()
        self._view = self.builder.take()
        return self._view

    def _close(self) -> None:
        cycle, self._cycle = self._cycle, None
        if cycle is not None:
            cycle.close()

    def _forget(self) -> None:
        self.builder = SnapshotBuilder(self._site, self._others)
        self._memo = Memo()
        self._view: SnapshotView | None = None
        self._cycle: ExplainedCycle | None = None
        #: Whether a question took a view of which the loop has not planned.
        self._is_ahead = False

    @contextmanager
    def _for_loop(self) -> Iterator[None]:
        with self._changed:
            self._loop_waits = True
            self._changed.wait_for(lambda: not self._busy)
            self._busy, self._loop_waits = True, False
        try:
            yield
        finally:
            self._free()

    @contextmanager
    def _for_question(self, user: str) -> Iterator[None]:
        with self._questions.turn(user, TURN_S):
            with self._changed:
                if not self._changed.wait_for(lambda: not (self._busy or self._loop_waits), TURN_S):
                    raise Busy(_BUSY)
                self._busy = True
            try:
                yield
            finally:
                self._free()

    def _free(self) -> None:
        with self._changed:
            self._busy = False
            self._changed.notify_all()


class _Seen(msgspec.Struct, frozen=True):
    """What one view says."""

    view: SnapshotView
    answers: Answers
    #: Of growth a plan decides, too.
    plan: Plan | None


def _tell(node: TreeNode, standing: Standing) -> QueueStanding:
    portion = next(iter(standing.portions), None)
    if portion is None:
        return QueueStanding(node, standing.share.text)
    return QueueStanding(node, standing.share.text, portion.deserved, write_part(portion.fair))
