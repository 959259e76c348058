"""Hostile submissions: refused with a precise error, in bounded time, never a 500."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from tests.api.house import House
from tests.store.databases import SqliteFiles

PATH = "/api/pool/team/workflow"
TASK = "workflow: {name: x, tasks: [{name: a, %s}]}"
NAMED = "workflow: {name: %s, tasks: [{name: a}]}"
LABELLED = "workflow: {name: x, labels: {%s}, tasks: [{name: a}]}"
ASKING = "workflow: {name: x, resources: {default: {%s}}, tasks: [{name: a}]}"
MANY = "workflow:\n  name: x\n  tasks:\n"
BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 10)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.fixture(scope="module")
def team(sqlite_files: SqliteFiles) -> Iterator[House]:
    """One for all: what is refused leaves nothing behind."""
    address = sqlite_files.make()
    with House(sqlite_files.open(address)) as made:
        made.pool("team", 100)
        yield made
    sqlite_files.give_back(address)


def refusal(house: House, text: str, **body: Any) -> str:
    """The message with which a workflow is refused, by validating and by submitting alike."""
    response = house.ask("POST", PATH, json={"file": text, **body})
    assert 400 == response.status_code, response.text
    answer = response.json()
    assert "USER" == answer["error_code"]
    assert "Traceback" not in response.text
    return "\n".join((answer["message"], *answer["details"]))


LOOP, END = "{% for a in range(99999) %}", "{% endfor %}"
TEMPLATES = {
    "nested loops": (f"{LOOP}{LOOP}{END}{END}", "longer than 2 seconds"),
    "much output": (f"{LOOP}{{{{ 'x' * 1000 }}}}{END}", "gives more than 4,194,304 characters"),
    "a long text": ("{{ 'a' * 10**9 }}", "too much memory"),
    "a wide text": ("{{ '{:>900000000}'.format(1) }}", "too much memory"),
    "doubling": (
        f"{{% set n = namespace(x='a') %}}{LOOP}{{% set n.x = n.x ~ n.x %}}{END}",
        "much memory|longer than"),
    "a huge power": ("{% set x = 7 ** (10 ** 9) %}", "cannot be rendered|longer than"),
    "recursion": ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "nested too deep"),
    "deep brackets": ("{{ " + "(" * 5_000 + ")" * 5_000 + " }}", "nested too deep"),
    "a huge range": ("{{ range(10**9)|list }}", "a range is longer than 100,000"),
    "internals": ("{{ ''.__class__.__mro__ }}", "line 1: the attribute '__class__' must not"),
    "internals by filter": ("{{ ''|attr('__class__') }}", "__class__"),
    "internals by format": ("{{ '{0.__class__}'.format('') }}", "__class__"),
    "globals": ("{{ cycler.__init__.__globals__ }}", "'__init__' must not be used"),
    "a repeated placeholder": (
        f"{LOOP}{{{{host:{'a' * 100_000}}}}}{END}", "gives more than 4,194,304 characters"),
    "an include": ("{% include '/etc/passwd' %}", "cannot include, import or extend"),
    "an import": ("{% import 'os' as os %}", "cannot include, import or extend"),
    "half a character": ("{{ '\\ud800' }}", "half of a surrogate pair"),
    "a character of no text": ("{{ '\\x00' }}", "U\\+0000 must not stand"),
    "a private character": ("\ue000{{ '\ue000' }}", "workflow"),
    "a syntax error": ("a: 1\nb: {{ x", "line 2: unexpected end of template"),
    "what is not set": ("a: 1\n\nb: {{ nodes }}", "line 3: the variable 'nodes' is not set"),
    "what is not set below": ("{{ a.b.c }}\ndefault-values: {a: {}}", "line 1"),
    "defaults twice": ("default-values: {}\ndefault-values: {}", "twice, again on line 2"),
    "no defaults": ("default-values: [1]\nx: {{ y }}", "must be a mapping"),
    "broken defaults": ("a: 1\ndefault-values: {b: [}\nc: {{ b }}", "default-values on line 2"),
    "many defaults": (f"{BOMB.replace('a: &a', 'default-values: {a: &a')}", "default-values"),
    "a reserved name": ("default-values: {output: 1}\nx: {{output}}", "'output' cannot be set"),
}  # fmt: skip


@pytest.mark.parametrize("kind", TEMPLATES)
def test_a_template_that_wants_too_much_is_refused(team: House, kind: str):
    text, message = TEMPLATES[kind]
    found = refusal(team, text)
    assert re.search(message, found)


@pytest.mark.parametrize("pair", ["", "x", "=1", "a b=1", "a.b=1", "1a=1", "a\n=1", "é=1"])
def test_a_variable_without_a_proper_name_is_refused(team: House, pair: str):
    message = refusal(team, "workflow: {name: x}", set_variables=[pair])
    assert "--set must be like name=value" in message


WRONG = {
    "a yaml bomb": (BOMB, "more than 100,000 values"),
    "deep nesting": ("workflow: " + "[" * 100_000, "nested more than 64 levels deep"),
    "a key twice": ("workflow: {}\nworkflow: {}", "stands here twice"),
    "a tag": ("workflow: !!python/object:os.system {}", "tag"),
    "keys twice without end": (
        "workflow: {" + ", ".join(["name: x"] * 200) + "}",
        "more than 100 keys that stand twice",
    ),
    "a merge key of nothing": ("workflow: {<<: 5, name: x}", "takes a mapping"),
    "unknown fields": (TASK % "imag: u, commands: []", "did you mean image"),
    "NUL in a name": (NAMED % '"x\\0"', "contains the character NUL"),
    "NUL in a value": (TASK % 'environment: {A: "\\0"}', "contains the character NUL"),
    "NUL in a key": (TASK % 'environment: {"A\\0": b}', "contains the character NUL"),
    "NUL in a file": (TASK % 'files: [{path: f, contents: "a\\0b"}]', "contains the character NUL"),
    "a control character in a name": (NAMED % '"x\\e[2J"', "is not valid"),
    "a line break in a name": (NAMED % '"x\\n"', "is not valid"),
    "a name that turns": (NAMED % '"\\u202ex"', "is not valid"),
    "a control character in a label": (LABELLED % 'k: "a\\x07"', "the label 'k' cannot be"),
    "a line break in a label": (LABELLED % '"k\\n": a', "is not a valid Kubernetes label key"),
    "too many labels": (
        LABELLED % ", ".join(f"k{number}: v" for number in range(17)), "at most 16 are possible"),
    "a variable with =": (TASK % "environment: {A=B: c}", "'A=B' is not the name of a variable"),
    "a variable with a line break": (TASK % 'environment: {"A\\nB": c}', "is not the name of"),
    "a variable without a name": (TASK % 'environment: {"": c}', "is not the name of a variable"),
    "a long variable": (TASK % f"environment: {{A: {'x' * 200_000}}}", "has 200,000 bytes"),
    "a long argument": (TASK % f"args: [{'x' * 200_000}]", "has 200,000 bytes"),
    "a path upwards": (TASK % "files: [{path: ../x, contents: ''}]", "leads upwards with '..'"),
    "a path upwards inside": (TASK % "files: [{path: /a/../../x, contents: ''}]", "leads upwards"),
    "a path with a line break": (TASK % 'files: [{path: "a\\nb", contents: ""}]', "a control"),
    "a folder as a file": (TASK % "files: [{path: a/, contents: ''}]", "a file has a name"),
    "two files at a path": (
        TASK % "files: [{path: a, contents: ''}, {path: a, contents: b}]", "another file"),
    "a file without anything": (TASK % "files: [{path: a}]", "either contents or a localpath"),
    "no base64": (TASK % "files: [{path: a, contents: '?', base64: true}]", "not valid base64"),
    "a mount upwards": (TASK % "credentials: {c: /a/../b}", "leads upwards"),
    "a credential's variable": (TASK % "credentials: {c: {A=B: k}}", "not the name of a variable"),
    "a url upwards": (TASK % "outputs: [{url: s3://b/../c}]", "leads upwards"),
    "no url": (TASK % "outputs: [{url: /etc}]", "is not a URL like s3://bucket/path"),
    "an endless regex": (TASK % "inputs: [{url: s3://b, regex: (a+)+$}]", "could take for ever"),
    "no regex": (TASK % "inputs: [{url: s3://b, regex: '['}]", "is not a regular expression"),
    "a long regex": (TASK % f"inputs: [{{url: s3://b, regex: {'a' * 2_000}}}]", "at most 256"),
    "a huge number of GPUs": (
        ASKING % f"gpu: 1{'0' * 30}", "more than any machine has"),
    "less than nothing": (ASKING % "cpu: -1", "cpu: is -1000m, but must not be negative"),
    "a huge memory": (ASKING % "memory: 9e30", "more than any machine has"),
    "a huge integer": ("version: 1" + "0" * 5_000 + "\nworkflow: {}", "but must be 2"),
    "a huge timeout": (
        "workflow: {name: x, timeout: {exec_timeout: 999999d}, tasks: [{name: a}]}",
        "must be from 1s to 3650d"),
    "no time at all": (
        "workflow: {name: x, timeout: {queue_timeout: 0s}, tasks: [{name: a}]}",
        "must be from 1s to 3650d"),
    "a huge exit code": (TASK % "exitActions: {FAIL: 999999999}", "is not a list of exit codes"),
    "10,000 tasks": (
        MANY + "".join(f"  - {{name: t{i}}}\n" for i in range(10_000)),
        "has 10000 tasks or more; at most 1000 are allowed"),
    "10,000 replicas": (TASK % "replicas: 10000", "are 10000; a workflow has at most 1000 tasks"),
    "many groups of replicas": (
        MANY + "".join(f"  - {{name: t{i}, replicas: 900}}\n" for i in range(900)),
        "tasks or more; at most 1000 are allowed"),
    "large replicas": (
        TASK % f"replicas: 1000, files: [{{path: a, contents: {'x' * 100_000}}}]",
        "take 100,437,000 bytes or more"),
    "many variables of replicas": (
        TASK % f"replicas: 1000, environment: {{{', '.join(f'A{i}: b' for i in range(9_000))}}}",
        "bytes or more, each replica with its own files"),
    "many nodes of replicas": (
        (ASKING % f"nodesExcluded: [{', '.join(f'n{i}' for i in range(9_000))}]").replace(
            "name: a", "name: a, replicas: 1000"),
        "bytes or more, each replica with its own files"),
    "many levels": (
        ASKING % f"topology: [{', '.join(f'{{key: k{i}}}' for i in range(20_000))}]",
        "workflow.resources.default.topology: has 20000 levels; at most 16 are possible"),
    "many regexes": (
        TASK % f"inputs: [{', '.join(f'{{url: s3://b, regex: a{i}}}' for i in range(2_000))}]",
        "has 2000 regexes; at most 1000 are possible"),
    "many tags": (
        "".join(f"%TAG !t{i}! tag:x\n" for i in range(100_000)) + f"--- {NAMED % 'x'}",
        "more than 100 %TAG directives"),
    "a platform in colour": (ASKING % 'platform: "\\e[31m"', "platform: '\\x1b[31m' has char"),
    "a long image": (TASK % f"image: {'x' * 600}", "has 600 characters; at most 512 are possible"),
    "a node of two lines": (ASKING % 'nodesExcluded: [a, "b\\nc"]', "nodesExcluded[1]: 'b\\nc'"),
    "no list": ("workflow: {name: x, tasks: {name: a}}", "expected a list"),
    "no mapping": ("workflow: [1]", "expected a mapping"),
    "nothing": ("", "one YAML document, not 0"),
    "a wrong version": ("version: 3\nworkflow: {name: x, tasks: [{name: a}]}", "but must be 2"),
    "a cycle": (
        TASK % "inputs: [{task: b}]}, {name: b, inputs: [{task: a}]", "'b' is declared later"),
    "itself": (TASK % "inputs: [{task: a}]", "is in the same group"),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_a_workflow_that_cannot_be_right_is_refused_with_a_reason(team: House, kind: str):
    text, message = WRONG[kind]
    assert message in refusal(team, text)


def test_more_than_a_thousand_unknown_fields_are_not_all_listed(team: House):
    text = "workflow:\n" + "".join(f"  k{number}: 1\n" for number in range(40_000))
    response = team.ask("POST", PATH, json={"file": text})

    assert (400, 100) == (response.status_code, len(response.json()["details"]))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("label=a%0Ab=1", "is not a valid Kubernetes label key"),
        ("label=a=%07", "the label 'a' cannot be"),
        ("label=" + "x" * 70 + "=1", "is not a valid Kubernetes label key"),
        ("label=x", "label must be like key=value"),
        ("env_vars=A%0AB=1", "is not the name of a variable"),
        ("env_vars=1A=1", "is not the name of a variable"),
        ("env_vars==1", "env_vars must be like key=value"),
        ("&".join(f"label=k{number}=v" for number in range(17)), "has 17 labels; at most 16"),
    ],
)
def test_additions_are_checked_as_what_they_are_added_to(team: House, query: str, message: str):
    status, found = team.refused("POST", f"{PATH}?{query}", {"file": TASK % "lead: true"})
    assert (400, True) == (status, message in found), found


def test_a_long_variable_for_many_tasks_is_refused(team: House):
    text = TASK % "replicas: 1000"
    query = f"env_vars=A={'x' * 30_000}"
    status, found = team.refused("POST", f"{PATH}?{query}", {"file": text})
    assert (400, True) == (status, "30,001,000 characters with all 1000 tasks" in found), found


@pytest.mark.parametrize("field", ["file", "uploaded_templated_spec"])
def test_a_template_that_would_change_a_terminal_is_refused(team: House, field: str):
    body = {"file": TASK % "lead: true", field: "# {# \x1b[2J #}\n" + TASK % "lead: true"}
    status, found = team.refused("POST", PATH, body)
    assert (400, True) == (status, "line 1: the character U+001B must not stand" in found), found


def test_results_of_others_are_for_those_who_may_read_their_workflows(team: House):
    team.pool("secret", 10)
    theirs, ours = team.submit(1, "secret"), team.submit(1)
    user = team.user("curious", "osmo-team-user")
    text = TASK % "inputs: [{task: '%s:task-0-0'}]"

    status, found = team.refused("POST", PATH, {"file": text % theirs}, user=user)
    assert (403, f"Task a reads from workflow {theirs}, which curious may not read.") == (
        status, found,
    )  # fmt: skip
    team.send("POST", PATH, {"file": text % ours}, user=user)
    second = team.send("POST", PATH, {"file": text % theirs})["name"]
    again = team.ask("POST", f"{PATH}?workflow_id={second}", user=user)
    assert 403 == again.status_code
    assert "reads from workflow job-777, which does not exist" in refusal(team, text % "job-777")
    many = ", ".join(f"{{task: 'job-{number}:a'}}" for number in range(101))
    assert "from 101 other workflows; at most 100" in refusal(team, TASK % f"inputs: [{many}]")


def test_a_value_of_the_environment_may_have_anything_but_nul(team: House):
    text = TASK % "environment: {A: '=$(x) é', B: \"a\\nb\", C_1: 4}"
    assert team.send("POST", PATH, {"file": text})["name"].startswith("x-")


def test_absolute_paths_are_left_to_the_backend(team: House):
    text = TASK % "files: [{path: /etc/passwd, contents: ''}]"
    assert team.send("POST", PATH, {"file": text})["name"].startswith("x-")


def test_ten_megabytes_are_too_large(team: House):
    response = team.ask("POST", PATH, json={"file": "x" * (10 << 20)})
    assert (413, "too_large") == (response.status_code, response.json()["code"])
    assert "The body is larger than 8 MiB, the most that this server takes." in response.text


@pytest.mark.parametrize(
    "body",
    [
        b'{"file": "\xff"}', b'{"file": "\\ud800"}', b'{"file": 5}', b"[]", b"{", b'"x"',
        b"\xff\xfe", b'{"file": "\\u0000"}', b'{"file": "a\\\\\\u0000"}',
        b'{"file":' + b"[" * 99_999 + b"]" * 99_999,
        b'{"file": "x", "more":' + b'{"a":' * 99_999 + b"1" + b"}" * 100_000,
    ],
)  # fmt: skip
def test_a_body_that_is_no_submission_is_refused(team: House, body: bytes):
    headers = {"content-type": "application/json"}
    response = team.ask("POST", PATH, content=body, headers=headers)
    assert (400, True) == (response.status_code, "message" in json.loads(response.text))


def test_text_that_looks_like_an_escaped_nul_is_text(team: House):
    text = TASK % "args: ['\\u0000', '\\\\u0000']"
    assert team.send("POST", PATH, {"file": text})["name"].startswith("x-")


def test_what_is_wrong_with_a_parameter_is_said_with_its_name(team: House):
    response = team.ask("POST", f"{PATH}?priority=URGENT", json={"file": TASK % "lead: true"})
    assert "query priority: Invalid enum value 'URGENT'" == response.json()["message"]


def test_a_body_that_never_comes_is_no_failure_of_the_server(
    team: House, caplog: pytest.LogCaptureFixture
):
    secret = team.secrets["admin"].encode()
    scope = {
        "type": "http", "method": "POST", "path": PATH, "raw_path": PATH.encode(),
        "query_string": b"", "root_path": "", "scheme": "http", "http_version": "1.1",
        "headers": [(b"authorization", b"Bearer " + secret), (b"content-length", b"100")],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
    }  # fmt: skip
    received = iter(
        [
            {"type": "http.request", "body": b'{"file":', "more_body": True},
            {"type": "http.disconnect"},
        ]
    )
    sent: list[Any] = []

    async def receive() -> Any:
        return next(received)

    async def send(message: Any) -> None:
        sent.append(message)

    anyio.run(team.application, scope, receive, send)

    assert 400 == sent[0]["status"]
    assert [] == [each for each in caplog.records if each.levelname == "ERROR"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("add=%1B%5B31m", "'\\x1b[31m' cannot be a tag"),
        ("add=a%0Ab", "'a\\nb' cannot be a tag"),
        ("add=", "'' cannot be a tag"),
        ("add=" + "x" * 101, "it has 1 to 100 characters"),
        ("&".join(f"add={number}" for number in range(101)), "would have 101 tags; at most 100"),
    ],
)
def test_tags_that_are_none_are_refused(team: House, query: str, message: str):
    name = team.submit(1)
    status, found = team.refused("POST", f"/api/workflow/{name}/tag?{query}")
    assert (400, True) == (status, message in found), found


def test_what_is_said_about_a_cancellation_is_one_line_and_not_long(team: House):
    name = team.submit(1)
    path = f"/api/workflow/{name}/cancel?message="
    status, found = team.refused("POST", path + "x" * 2_001)
    assert (400, True) == (status, "has 2001 characters; at most 2000" in found), found
    team.send("POST", path + "no%0D%0Aneed%1B%5B2J %E2%80%AEof it")
    expected = "Task was canceled by user: admin. no need [2J of it"
    assert expected == team.get(f"/api/workflow/{name}")["failure_message"]


@pytest.mark.parametrize("number", ["9" * 5_000, "\xb2", "-1", "1e3", "0x1", ""])
def test_what_is_no_number_of_an_event_is_refused(team: House, number: str):
    headers = {"last-event-id": number.encode("latin-1")}
    response = team.ask("GET", "/api/events", headers=headers)
    assert (400, True) == (response.status_code, "Last-Event-ID" in response.json()["message"])


@pytest.mark.parametrize("query", ["workflow_id=nobody-7", "workflow_id=%F0%9F%8C%B3"])
def test_an_unknown_workflow_cannot_be_submitted_again(team: House, query: str):
    assert 404 == team.ask("POST", f"{PATH}?{query}").status_code


def test_either_a_body_or_an_earlier_workflow_is_sent(team: House):
    assert 400 == team.ask("POST", PATH).status_code
    sent = team.ask("POST", f"{PATH}?workflow_id=x-1", json={"file": TASK % "lead: true"})
    assert 400 == sent.status_code
