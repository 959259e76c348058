"""The policy file: every choice can be written, and what cannot be used is told precisely."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from bough.errors import NotFound
from bough.formats.policy_file import (
    LEAST,
    PRESETS,
    PolicyRead,
    WrittenPolicy,
    field_names,
    policy_document,
    policy_of,
    preset_for,
    read_policy,
    read_policy_file,
)
from bough.formats.yaml.composer import compose
from bough.formats.yaml.documents import Document
from bough.model.gang_rules import GrowthTurn, IdleShare, LineOrder, VictimAge, VictimSearch
from bough.model.place_policy import Packing, PlacePolicy
from bough.model.policy import (
    KAI,
    KAI_FAIR,
    KUEUE,
    KUEUE_FAIR,
    OSMO,
    Heads,
    Judging,
    OrderKey,
    Policy,
    RequeuingTimestamp,
    ShareRule,
)

ROOT = Path(__file__).parents[2]


def documents(text: str) -> list[Document]:
    return [Document(value, "policy.yaml", line) for value, line in compose(text, "policy.yaml")]


def read(text: str, **options: bool) -> PolicyRead:
    (document,) = documents(text)
    return policy_of(document, **options)


def problems(text: str) -> list[tuple[str, str, int]]:
    return [(each.field, each.message, each.line) for each in read(text).problems]


def test_an_empty_policy_is_the_default():
    assert PolicyRead(OSMO, []) == read("{}")
    assert KUEUE == policy_of(documents("{}")[0], KUEUE).policy


@pytest.mark.parametrize("preset", [OSMO, KUEUE, KUEUE_FAIR, KAI])
def test_a_preset_is_a_policy(preset: Policy):
    assert PolicyRead(preset, []) == read(f"preset: {preset.name}")


def test_every_kind_of_field_can_be_written():
    found = read(
        """
        preset: kueue
        name: ours
        heads: all
        order: [priority, timestamp]
        requeuing_timestamp: Creation
        partial_admission: false
        gangs:
          line: by_weight
          growth: in_line
          minimum_runtime: 15m
          grace: 0s
          eviction_limit: 10
          staleness_grace: none
          reservations: 0
          placement: {packing: spread, work: 10}
        """
    )

    assert [] == found.problems
    assert found.policy == msgspec.structs.replace(
        KUEUE,
        name="ours",
        heads=Heads.ALL,
        order=(OrderKey.PRIORITY, OrderKey.TIMESTAMP),
        requeuing_timestamp=RequeuingTimestamp.CREATION,
        partial_admission=False,
        gangs=msgspec.structs.replace(
            KUEUE.gangs,
            placement=PlacePolicy(packing=Packing.SPREAD, work=10),
            line=LineOrder.BY_WEIGHT,
            growth=GrowthTurn.IN_LINE,
            minimum_runtime_ms=900_000,
            grace_ms=0,
            eviction_limit=10,
            staleness_grace_ms=None,
            reservations=0,
        ),
    )


def test_a_list_may_be_emptied():
    fair = read("preset: kueue-fair\ntake_by_share: []")

    assert PolicyRead(msgspec.structs.replace(KUEUE_FAIR, take_by_share=()), []) == fair


@pytest.mark.parametrize("preset", [OSMO, KUEUE, KUEUE_FAIR, KAI])
def test_a_policy_that_is_written_out_is_read_back(preset: Policy):
    text = msgspec.json.encode(policy_document(preset, preset.name)).decode()

    assert PolicyRead(preset, []) == read(text)


def test_a_document_says_times_with_units_and_no_limit_as_none():
    changed = read(
        "gangs: {minimum_runtime: 90m, grace: 0s, staleness_grace: none, reservations: 2}"
    ).policy

    written = policy_document(changed, "osmo")["gangs"]

    names = ("minimum_runtime", "grace", "staleness_grace", "eviction_limit", "reservations")
    assert ["90m", "0s", "none", "none", 2] == [written[name] for name in names]


def test_every_field_has_its_place_in_a_document():
    def paths(document: dict[str, object], start: str = "") -> list[str]:
        found: list[str] = []
        for name, value in document.items():
            nested = isinstance(value, dict)
            found += paths(value, f"{start}{name}.") if nested else [f"{start}{name}"]
        return found

    assert ["preset", *field_names()] == paths(policy_document(OSMO, "osmo"))


def test_what_must_not_be_zero_is_a_field():
    assert {*LEAST} <= {name.split(".")[-1] for name in field_names()}


def test_what_is_unknown_is_named_with_what_was_probably_meant():
    assert [
        ("gangs.minimum_runtme", "unknown field; did you mean minimum_runtime?", 2),
        ("gangs.minimum_runtime_ms", "unknown field; did you mean minimum_runtime?", 3),
    ] == problems("gangs:\n  minimum_runtme: 3s\n  minimum_runtime_ms: 3000\n")


@pytest.mark.parametrize(
    ("text", "field", "message"),
    [
        (
            "preset: osmos",
            "preset",
            "expected one of osmo, kueue, kueue-fair, kai, kai-fair, not the text 'osmos'",
        ),
        ("heads: frist", "heads", "did you mean first?"),
        ("order: [priority, time]", "order[1]", "expected one of holds_quota, nominated"),
        ("order: [priority, priority]", "order[1]", "priority stands here twice"),
        ("order: priority", "order", "expected a list"),
        ("partial_admission: 3", "partial_admission", "expected true or false"),
        ("gangs: {grace: 30}", "gangs.grace", "'30' is not a duration; write it like 90s"),
        ("gangs: {grace: none}", "gangs.grace", "'none' is not a duration"),
        ("gangs: {eviction_limit: -1}", "gangs.eviction_limit", "must be at least 1"),
        ("gangs: {reservations: none}", "gangs.reservations", "expected a whole number"),
        ("gangs: [1]", "gangs", "expected a mapping"),
        ("[1]", "", "expected a mapping"),
        ("gangs: {placement: {packing: tight}}", "gangs.placement.packing", "best_fit, spread"),
    ],
)
def test_what_cannot_be_used_is_told_with_its_place(text: str, field: str, message: str):
    found = read(text)

    assert OSMO == found.policy
    assert [field] == [each.field for each in found.problems]
    assert message in found.problems[0].message


def test_unknown_fields_are_warnings_when_reading_leniently():
    found = read("sort: true", lenient=True)

    assert ["warning"] == [each.severity.value for each in found.problems]


def test_a_policy_file_is_one_document(tmp_path: Path):
    path = tmp_path / "policy.yaml"
    path.write_text("preset: kueue\n")
    assert PolicyRead(KUEUE, []) == read_policy(str(path))

    path.write_text("preset: kueue\n---\npreset: osmo\n")
    assert ["has 2 documents; a policy file is one document"] == [
        each.message for each in read_policy(str(path)).problems
    ]
    path.write_text("")
    assert ["is empty; a policy file is one document"] == [
        each.message for each in read_policy(str(path)).problems
    ]


def test_a_preset_can_be_named_instead_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert PolicyRead(KUEUE_FAIR, []) == read_policy("kueue-fair")
    assert WrittenPolicy(KAI_FAIR, [], "kai-fair") == read_policy_file("kai-fair")

    # A file of that name is what was meant.
    (tmp_path / "kueue-fair").write_text("preset: kueue\n")
    assert PolicyRead(KUEUE, []) == read_policy("kueue-fair")

    with pytest.raises(NotFound) as caught:
        read_policy("kai-fare")
    assert (
        "kai-fare: no such file, and no preset; these are osmo, kueue, kueue-fair, kai, kai-fair; "
        "did you mean kai-fair?"
    ) == caught.value.message


def test_objects_of_kueue_pick_its_preset():
    kai = "apiVersion: scheduling.run.ai/v2\nkind: Queue\n"
    kueue = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\n"

    assert OSMO is preset_for(documents(kai))
    assert KUEUE is preset_for(documents(f"{kai}---\n{kueue}"))
    assert OSMO is preset_for(documents("[1]"))


def test_every_field_is_documented():
    text = (ROOT / "docs/policy.md").read_text(encoding="utf-8")

    missing = [name for name in field_names() if f"| `{name}` |" not in text]

    assert [] == missing


def test_every_choice_of_a_field_is_documented():
    text = (ROOT / "docs/policy.md").read_text(encoding="utf-8")

    gangs = [*LineOrder, *IdleShare, *GrowthTurn, *VictimAge, *VictimSearch, *Packing]
    choices = [*Judging, *Heads, *OrderKey, *ShareRule, *RequeuingTimestamp, *gangs]

    assert [] == [each.value for each in choices if f"`{each.value}`" not in text]


def test_the_presets_stand_beside_each_other_as_they_are():
    documents = {name: policy_document(each, name) for name, each in PRESETS.items()}
    text = (ROOT / "docs/policy.md").read_text(encoding="utf-8")
    table = text.partition("## The presets beside each other")[2].partition("\n## ")[0]

    expected = [f"| field | {' | '.join(f'`{name}`' for name in documents)} |"]
    for field in field_names():
        values = [said(each, field) for each in documents.values()]
        if field != "name" and any(value != values[0] for value in values):
            expected.append(f"| `{field}` | {' | '.join(map(shown, values))} |")

    assert expected == [line for line in table.splitlines() if line.startswith("| ")]


def said(document: Any, field: str) -> Any:
    for part in field.split("."):
        document = document[part]
    return document


def shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(f"`{each}`" for each in value) or "none"
    return f"`{value}`" if isinstance(value, str) else str(value)
