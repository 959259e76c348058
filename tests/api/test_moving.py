"""Moving work that waits to another pool, subpool or priority."""

from __future__ import annotations

from tests.api.house import delete, full, statuses


def test_a_workflow_that_waits_is_moved_and_keeps_its_submit_time(divided):
    divided.run(10, "team")
    waiting = divided.submit(5, "team", "NORMAL")
    divided.settle()
    submitted = divided.get(f"/api/workflow/{waiting}")["submit_time"]
    divided.time.ms += 60_000

    moved = divided.send(
        "PATCH", f"/api/workflow/{waiting}", {"pool": "team--c", "priority": "HIGH"}
    )
    divided.settle()

    assert ("team--c", "HIGH", submitted) == (
        moved["pool"],
        moved["priority"],
        moved["submit_time"],
    )
    assert "RUNNING" == divided.status(waiting)
    assert ("20", "5", "15") == divided.row("team--c")
    entry = divided.get(f"/api/audit?subject=workflow/{waiting}")["entries"][0]
    assert ("workflow:Update", f"workflow/{waiting}") == (entry["action"], entry["subject"])
    assert {"pool": "team", "priority": "NORMAL"} == entry["before"]
    assert {"pool": "team--c", "priority": "HIGH"} == entry["after"]


def test_a_move_goes_before_those_that_were_submitted_later(divided):
    running = divided.run(20, "team--c")
    divided.run(40, "team--b")
    early = divided.submit(20, "team--b", "NORMAL")
    divided.time.ms += 1_000
    late = divided.submit(20, "team--c", "NORMAL")
    divided.settle()

    divided.send("PATCH", f"/api/workflow/{early}", {"pool": "team--c"})
    divided.settle()
    divided.finish(running)

    assert ["RUNNING", "PENDING"] == statuses(divided, early, late)


def test_what_holds_gpus_is_not_moved(divided):
    running = divided.run(10, "team--b")

    status, message = divided.refused("PATCH", f"/api/workflow/{running}", {"pool": "team--c"})

    assert 409 == status
    assert (
        f"Workflow {running} cannot be moved: its group group-0 holds GPUs. Only a workflow that "
        "waits can be moved; cancel it and submit it again."
    ) == message


def test_a_move_is_checked_as_a_submission(divided):
    divided.user("sue", "osmo-team-user")
    divided.pool("other", 0)
    divided.run(40, "team--b")
    waiting = divided.submit(30, "team--b")
    path = f"/api/workflow/{waiting}"

    def refused(body: object, **options: object) -> tuple[int, str]:
        return divided.refused("PATCH", path, body, **options)

    assert (403, "access denied") == refused({"pool": "other"}, user="sue")
    assert 400 == refused({"pool": "team"})[0]
    assert "Pool team has 10 GPUs guaranteed" in refused({"pool": "team"})[1]
    assert (404, "Pool team--x not found.") == refused({"pool": "team--x"})
    assert 400 == refused({})[0]
    assert 400 == refused({"pools": "team"})[0]
    delete(divided, "a")
    assert (
        409,
        "Subpool team--a is ARCHIVED and does not accept new workflows.",
    ) == refused({"pool": "team--a"})
    assert "team--b" == divided.get(path)["pool"]


def test_waiting_work_of_a_deleted_subpool_may_go_on_as_low(divided):
    running, waiting = full(divided)
    divided.create("team", "d", 40)
    divided.finish(running)
    divided.send("PATCH", f"/api/workflow/{waiting}", {"priority": "LOW"})
    divided.settle()

    assert "RUNNING" == divided.status(waiting)


def test_a_finished_workflow_is_not_moved(divided):
    done = divided.run(10, "team")
    divided.finish(done)

    assert (400, f"Workflow {done} is already finished.") == divided.refused(
        "PATCH", f"/api/workflow/{done}", {"priority": "LOW"}
    )
