"""Users are told by e-mail and webhooks, with real receivers; and never anywhere else."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest

from bough.control.records import notifications
from bough.errors import Invalid
from bough.model.notification import EmailSender, NotificationRules
from bough.server import notification_senders
from bough.server.notification_senders import NetworkSender, read_rules
from bough.server.notifier import Notifier
from tests.api.house import House
from tests.api.receiving import Hooks, Mails, receiving_hooks, receiving_mail

#: For a machine that is busy with other tests.
PATIENCE_S = 60
PROFILE = "/api/profile/settings"


@pytest.fixture
def hooks() -> Iterator[Hooks]:
    with receiving_hooks() as found:
        yield found


@pytest.fixture
def mails() -> Iterator[Mails]:
    with receiving_mail() as found:
        yield found


class Post:
    """The house, with what it may send."""

    def __init__(self, house: House, rules: NotificationRules) -> None:
        self.house = house
        self.rules = rules
        self.site = dataclasses.replace(house.site, notifications=rules)
        house.authenticator.site = self.site
        notifications.collect(self.site)

    def chooses(self, channel: str, url: str | None = None, user: str = "ann") -> None:
        if url is not None:
            name = "slack-webhook" if channel == "slack" else channel
            body = {"generic_credential": {"credential": {"url": url}}}
            self.house.send("POST", f"/api/credentials/{name}", body, user=user)
        self.house.send("POST", PROFILE, {f"{channel}_notification": True}, user=user)

    def run(self) -> int:
        notifications.collect(self.site)
        sender = NetworkSender(self.rules)
        found = notifications.receivers(self.site)
        return sum(notifications.deliver(self.site, sender, each) for each in found)


@pytest.fixture
def ann(team: House) -> House:
    team.user("ann", "osmo-team-user")
    return team


def post(house: House, hooks: Hooks | None = None, mails: Mails | None = None) -> Post:
    email = None
    if mails is not None:
        email = EmailSender(
            "127.0.0.1", "bough@example.com", ("example.com",), port=mails.port, security="none"
        )
    return Post(house, NotificationRules(email, () if hooks is None else (hooks.address,)))


def test_scenario_098_no_change_of_a_subpool_is_told_to_users(ann: House, hooks: Hooks):
    ann.user("kim", "osmo-team-admin")
    found = post(ann, hooks)
    for user in ("ann", "kim"):
        found.chooses("webhook", f"{hooks.address}/{user}", user=user)
    subpools = "/api/configs/pool/team/subpool"
    ann.send("POST", subpools, {"name": "a", "quota": 5}, user="kim")
    name = ann.run(5, "team--a")
    ann.send("PATCH", f"{subpools}/a", {"quota": 6}, user="kim")
    ann.send("DELETE", f"{subpools}/a", user="kim")
    assert "DELETING" == ann.get(f"{subpools}/a")["subpool_state"]
    ann.finish(name)
    assert "ARCHIVED" == ann.get(f"{subpools}/a")["subpool_state"]
    ann.send("POST", subpools, {"name": "a", "quota": 5}, user="kim")

    assert (0, []) == (found.run(), hooks.got)
    # What they are told is how their own work ends.
    own = ann.submit(1, user="ann")
    ann.settle()
    ann.finish(own)
    assert 1 == found.run()


def test_the_end_of_a_workflow_is_told_by_each_chosen_way(ann: House, hooks: Hooks, mails: Mails):
    found = post(ann, hooks, mails)
    found.chooses("email")
    found.chooses("slack", f"{hooks.address}/services/T0")
    found.chooses("webhook", f"{hooks.address}/told?x=1")
    name = ann.submit(1, user="ann")
    other = ann.submit(1)
    ann.settle()
    assert 0 == found.run()
    ann.finish(name)
    ann.finish(other)
    assert 3 == found.run()
    ((receivers, mail),) = mails.got
    assert (["ann@example.com"], f"[bough] {name} is COMPLETED") == (receivers, mail["Subject"])
    assert f"workflow: {name}" in mail.get_payload()
    got = dict(hooks.got)
    assert {"text": f"{name} is COMPLETED"} == got["/services/T0"]
    told = got["/told?x=1"]
    assert ("ended", name, "COMPLETED", "team", "ann") == tuple(
        told[field] for field in ("event", "workflow", "status", "pool", "user")
    )
    assert 0 == found.run()


def test_preemption_and_drain_are_told(ann: House, hooks: Hooks):
    found = post(ann, hooks)
    found.chooses("webhook", f"{hooks.address}/told")
    low = ann.submit(100, priority="LOW", user="ann")
    ann.settle()
    ann.run(100)
    found.run()
    assert [("preempted", low)] == [(told["event"], told["workflow"]) for _, told in hooks.got]
    assert "for job-2" in hooks.got[0][1]["message"]
    hooks.got.clear()
    ann.send("POST", f"/api/workflow/{low}/cancel")
    ann.send("POST", "/api/workflow/job-2/cancel")
    ann.settle()
    mine = ann.submit(1, user="ann")
    ann.settle()
    found.run()
    hooks.got.clear()
    ann.send("POST", "/api/node/node-0/drain")
    ann.settle()
    found.run()
    assert [("evicted", mine)] == [(told["event"], told["workflow"]) for _, told in hooks.got]
    assert "which is drained" in hooks.got[0][1]["message"]


def test_what_cannot_be_sent_is_tried_again_and_told_once(ann: House, hooks: Hooks, mails: Mails):
    found = post(ann, hooks, mails)
    found.chooses("email")
    found.chooses("webhook", f"{hooks.address}/told")
    mails.refuses, hooks.statuses = True, [500, 503]
    name = ann.submit(1, user="ann")
    ann.settle()
    ann.finish(name)
    assert 0 == found.run()
    mails.refuses = False
    assert 0 == found.run()
    for _ in range(3):
        ann.time.ms += notifications.LONGEST_PAUSE_MS
        found.run()
    assert (3, 1) == (len(hooks.got), len(mails.got))
    with found.site.store.read() as connection:
        assert [] == notifications.notification_store.receivers(connection, 2**60, 10)


def test_after_many_tries_it_is_given_up(ann: House, hooks: Hooks, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(notifications, "MOST_ATTEMPTS", 2)
    found = post(ann, hooks)
    found.chooses("webhook", f"{hooks.address}/told")
    hooks.statuses = [500] * 10
    ann.finish(_started(ann))
    for _ in range(4):
        found.run()
        ann.time.ms += notifications.LONGEST_PAUSE_MS
    assert 2 == len(hooks.got)


def test_a_webhook_that_never_ends_its_answer_holds_up_no_other_user(ann: House, hooks: Hooks):
    ann.user("bob", "osmo-team-user")
    found = post(ann, hooks)
    hooks.slow = {"/ann"}
    for user in ("ann", "bob"):
        found.chooses("webhook", f"{hooks.address}/{user}", user=user)
    notifier = Notifier(found.site, NetworkSender(found.rules))
    notifier.start()
    try:
        ann.finish(_started(ann))
        _until(lambda: ["/ann"] == [path for path, _ in hooks.got])
        ann.finish(_started(ann, "bob"))
        _until(lambda: ["/ann", "/bob"] == [path for path, _ in hooks.got])
    finally:
        hooks.over.set()
        notifier.stop()


def test_a_webhook_that_never_ends_its_answer_is_cut_off(
    ann: House, hooks: Hooks, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(notification_senders, "LONGEST_S", 0.2)
    found = post(ann, hooks)
    hooks.slow = {"/told"}
    found.chooses("webhook", f"{hooks.address}/told")
    ann.finish(_started(ann))
    assert 0 == found.run()
    hooks.slow.clear()
    ann.time.ms += notifications.LONGEST_PAUSE_MS
    assert 1 == found.run()


def test_where_one_cannot_be_told_the_others_of_the_user_wait_as_long(ann: House, hooks: Hooks):
    found = post(ann, hooks)
    found.chooses("webhook", f"{hooks.address}/told")
    for _ in range(3):
        ann.finish(_started(ann))
    hooks.statuses = [500]
    assert (0, 0, 1) == (found.run(), found.run(), len(hooks.got))
    ann.time.ms += notifications.LONGEST_PAUSE_MS
    assert 3 == found.run()
    # What was tried before comes last, since it may be what the webhook does not take.
    told = [each["workflow"] for _, each in hooks.got]
    assert [told[0], *told[1:3], told[0]] == told


def test_what_cannot_be_told_for_a_day_is_given_up(ann: House, hooks: Hooks):
    found = post(ann, hooks)
    found.chooses("webhook", f"{hooks.address}/told")
    for _ in range(3):
        ann.finish(_started(ann))
    hooks.statuses = [500, 500]
    found.run()
    ann.time.ms += notifications.LONGEST_MS + 1
    assert 0 == found.run()
    ann.time.ms += notifications.LONGEST_PAUSE_MS
    assert (0, 2) == (found.run(), len(hooks.got))


def _until(condition: Callable[[], bool]) -> None:
    deadline_s = monotonic() + PATIENCE_S
    while not condition():
        assert monotonic() < deadline_s, "it did not come about"
        sleep(0.02)


def _started(house: House, user: str = "ann") -> str:
    name = house.submit(1, user=user)
    house.settle()
    return name


def test_a_webhook_that_leads_elsewhere_is_not_followed(ann: House, hooks: Hooks):
    found = post(ann, hooks)
    found.chooses("webhook", f"{hooks.address}/told")
    hooks.statuses = [302]
    ann.finish(_started(ann))
    found.run()
    assert ["/told"] == [path for path, _ in hooks.got]


def test_without_a_sender_a_profile_cannot_be_set(ann: House):
    for channel, message in (
        ("email", "Notifications by email cannot be sent: this server sends no e-mail."),
        ("slack", "Notifications by slack cannot be sent: this server sends nothing to webhooks."),
        ("webhook", "Notifications by webhook cannot be sent"),
    ):
        changes = {f"{channel}_notification": True}
        status, said = ann.refused("POST", PROFILE, changes, user="ann")
        assert (400, True) == (status, said.startswith(message)), said
        ann.send("POST", PROFILE, {f"{channel}_notification": False}, user="ann")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{other}/told",
        "https://127.0.0.1:{port}/told",
        "http://localhost:{port}/told",
        "http://127.0.0.1:{port}@169.254.169.254/told",
        "http://user@127.0.0.1:{port}/told",
        "http://127.0.0.1:{port}\\@evil.example/told",
        "file:///etc/passwd",
        "gopher://127.0.0.1:{port}/x",
        "http://127.0.0.1:{port}/a b",
        "http://127.0.0.1:99999/x",
        "",
    ],
)
def test_nothing_goes_where_an_administrator_has_not_allowed_it(ann: House, hooks: Hooks, url: str):
    found = post(ann, hooks)
    port = int(hooks.address.rpartition(":")[2])
    body = {"generic_credential": {"credential": {"url": url.format(port=port, other=port + 1)}}}
    if url:
        ann.send("POST", "/api/credentials/webhook", body, user="ann")
    status, _ = ann.refused("POST", PROFILE, {"webhook_notification": True}, user="ann")
    assert 400 == status
    # Nor if it was allowed when the profile was set.
    found.chooses("webhook", f"{hooks.address}/told")
    if url:
        ann.send("POST", "/api/credentials/webhook", body, user="ann")
    else:
        ann.send("DELETE", "/api/credentials/webhook", user="ann")
    ann.finish(_started(ann))
    assert (0, []) == (found.run(), hooks.got)


def test_users_of_other_domains_are_not_written_to(team: House, mails: Mails):
    found = post(team, mails=mails)
    for user, allowed in (("bob@example.com", True), ("eve@elsewhere.org", False)):
        team.user(user, "osmo-team-user")
        if allowed:
            found.chooses("email", user=user)
        else:
            status, said = team.refused("POST", PROFILE, {"email_notification": True}, user=user)
            assert (400, True) == (status, "is not an address at example.com" in said)


def test_an_array_is_told_once(ann: House, hooks: Hooks):
    found = post(ann, hooks)
    found.chooses("webhook", f"{hooks.address}/told")
    text = "workflow:\n  name: s\n  array: 0-2\n  tasks:\n  - {name: a, command: [x]}\n"
    name = ann.submit(0, text=text, user="ann")
    ann.settle()
    for index in range(3):
        ann.finish(f"{name}-{index}")
        found.run()
    assert [(name, "COMPLETED")] == [(told["workflow"], told["status"]) for _, told in hooks.got]


def test_what_happened_long_before_is_told_to_no_one(ann: House, hooks: Hooks):
    found = post(ann, hooks)
    found.chooses("webhook", f"{hooks.address}/told")
    ann.finish(_started(ann))
    ann.time.ms += 2 * notifications.OLDEST_MS
    assert (0, []) == (found.run(), hooks.got)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("webhooks: [https://a.example/path]", "must be a scheme and a host"),
        ("webhooks: [a.example]", "must be a scheme and a host"),
        ("email: {server: s, sender: x@y, domains: []}", "email.domains is empty"),
        ("email: {server: s, sender: x@y, domains: [y], security: ssl}", "must be one of"),
        (
            "email: {server: s, sender: x@y, domains: [y], user: u}",
            "email.password_file is missing",
        ),
        ("mail: {}", "unknown field"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, message: str):
    path = tmp_path / "notifications.yaml"
    path.write_text(text)
    with pytest.raises(Invalid, match=message):
        read_rules(path)
