"""Sessions where nothing can be reached into, and what is refused before anything is opened."""

from __future__ import annotations

UPGRADE = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
}


def test_a_backend_without_sessions_says_so_in_words(divided):
    name = divided.run(1, "team--a")
    task = divided.get(f"/api/workflow/{name}")["groups"][0]["tasks"][0]["name"]
    path = f"/api/workflow/{name}/exec/task/{task}?entry_command=id"
    key = divided.ask("POST", path).json()["key"]

    path = f"/api/router/exec/{name}/client/{key}"
    answer = divided.ask("GET", path, headers=UPGRADE)

    assert (409, True) == (answer.status_code, "nothing really runs" in answer.json()["message"])
    # The key was good for this one connection.
    assert 404 == divided.ask("GET", path, headers=UPGRADE).status_code


def test_what_cannot_be_right_is_refused_with_its_name_and_value(divided):
    name = divided.run(1, "team--a")
    one = f"/api/workflow/{name}"
    task = divided.get(one)["groups"][0]["tasks"][0]["name"]
    for path, words in (
        (f"{one}/exec/task/{task}", "entry_command"),
        (f"{one}/exec/task/{task}?entry_command=%27x", "cannot be split"),
        (f"{one}/portforward/{task}", "1 to 30 ports"),
        (f"{one}/portforward/{task}?task_ports=0", "0 is not a port"),
        (f"{one}/portforward/{task}?task_ports=70000", "70000 is not a port"),
        (f"{one}/exec/task/none?entry_command=id", "no task none"),
        (f"{one}/exec/group/none?entry_command=id", "no group none"),
    ):
        answer = divided.ask("POST", path)
        assert answer.status_code in (400, 404), path
        assert words in answer.json()["message"]
    plain = divided.ask("GET", f"/api/router/exec/{name}/client/none")
    assert (400, True) == (plain.status_code, "websocket" in plain.json()["message"])
