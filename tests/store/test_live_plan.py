"""Questions are answered from the loop's own plan: many for the price of one, the loop first."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from bough.control.scheduling import live_plan
from bough.control.scheduling.live_plan import LivePlan, Question
from bough.control.scheduling.loop import Bell
from bough.core.explain import certificate
from bough.model.workflow import WorkflowStatus
from tests.store.usecases import Explainer
from tests.store.world import World

WAIT_S = 60


@contextmanager
def deciding(world: World) -> Iterator[Explainer]:
    """The loop of a world in its thread, and threads that ask it."""
    bell, stop = Bell(), threading.Event()
    world.scheduler.live._ring = bell
    ready = threading.Event()
    cycle = world.scheduler.cycle

    def told():
        done = cycle()
        ready.set()
        return done

    world.scheduler.cycle = told
    loop = threading.Thread(target=world.scheduler.run, args=(bell, stop, 3_600.0))
    loop.start()
    assert ready.wait(WAIT_S)
    try:
        yield Explainer(world.site, world.scheduler.live.ask)
    finally:
        stop.set()
        bell()
        loop.join(WAIT_S)


def test_many_questions_about_one_plan_are_answered_from_one_cycle(team: World, monkeypatch):
    team.run(100)
    waiting = [team.submit(gpus) for gpus in range(60, 68)]
    played: list[object] = []
    run = certificate.run
    monkeypatch.setattr(certificate, "run", lambda copy: played.append(copy) or run(copy))
    with deciding(team) as explainer, ThreadPoolExecutor(8) as askers:
        first = explainer.explain(team.admin, waiting[0].workflow_id)
        played.clear()

        found = list(
            askers.map(lambda each: explainer.explain(team.admin, each.workflow_id), waiting)
        )

    assert len(played) <= 1
    assert first == found[0]
    assert [each.workflow_id for each in waiting] == [each.workflow.workflow_id for each in found]
    assert {"quota", "behind"} == {each.groups[0].reason for each in found}


def test_a_question_about_what_was_just_submitted_waits_for_the_plan_that_has_it(team: World):
    team.run(100)
    with deciding(team) as explainer:
        late = team.submit(10)
        # Its wake-up was missed, and the loop does not look for an hour.
        found = explainer.explain(team.admin, late.workflow_id)

        assert "quota" == found.groups[0].reason
        assert found.groups[0].certificate is not None
        assert "quota" == explainer.explain(team.admin, late.workflow_id).groups[0].reason
    assert WorkflowStatus.PENDING is team.status(late)


def test_what_a_question_has_seen_is_still_news_for_the_loop(team: World):
    team.settle()
    late = team.submit(10)

    team.scheduler.live.ask(Question("ann", waiting=(f"{late.workflow_id}/group",)))
    team.settle()

    assert WorkflowStatus.RUNNING is team.status(late)


def test_the_loop_waits_for_one_question_however_many_are_asked(team: World):
    live = team.scheduler.live
    begun, let = threading.Event(), threading.Event()
    order: list[str] = []

    def hold() -> None:
        with live._for_question("hostile"):
            begun.set()
            assert let.wait(WAIT_S)

    def ask(number: int) -> None:
        with live._for_question(f"user-{number}"):
            order.append("question")

    def decide() -> None:
        live.decide()
        order.append("plan")

    with ThreadPoolExecutor(8) as threads:
        held = threads.submit(hold)
        assert begun.wait(WAIT_S)
        asked = [threads.submit(ask, number) for number in range(5)]
        planned = threads.submit(decide)
        while not live._loop_waits:
            assert not planned.done()
            time.sleep(0.01)
        let.set()
        for each in (held, planned, *asked):
            each.result(WAIT_S)

    assert ["plan", *["question"] * 5] == order


def test_the_search_for_remedies_ends_after_its_time(team: World, monkeypatch):
    team.run(100)
    late = team.submit(60)
    team.settle()
    explainer = Explainer(team.site, LivePlan(team.site).ask)
    whole = explainer.explain(team.admin, late.workflow_id, with_remedies=True)
    monkeypatch.setattr(live_plan, "SEARCH_S", -1.0)

    cut = explainer.explain(team.admin, late.workflow_id, with_remedies=True)

    assert whole.groups[0].remedies.found
    assert not cut.groups[0].remedies.found
    assert cut.groups[0].remedies.given_up
    assert whole.groups[0].certificate == cut.groups[0].certificate
