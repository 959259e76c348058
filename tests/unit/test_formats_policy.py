"""The policy file: every choice can be written, and what cannot be used is told precisely."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bough.formats.composer import compose
from bough.formats.documents import Document
from bough.formats.policy import PolicyRead, field_names, policy_of, preset_for, read_policy
from bough.model.gangrules import GangRules, GrowthTurn, Line
from bough.model.placement import Packing, PlacePolicy
from bough.model.policy import KAI, KUEUE, OSMO, Heads, OrderKey, Policy, RequeuingTimestamp

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


@pytest.mark.parametrize("preset", [OSMO, KUEUE, KAI])
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
    assert found.policy == Policy(
        name="ours",
        heads=Heads.ALL,
        order=(OrderKey.PRIORITY, OrderKey.TIMESTAMP),
        requeuing_timestamp=RequeuingTimestamp.CREATION,
        partial_admission=False,
        gangs=GangRules(
            placement=PlacePolicy(packing=Packing.SPREAD, work=10),
            line=Line.BY_WEIGHT,
            growth=GrowthTurn.IN_LINE,
            minimum_runtime_ms=900_000,
            grace_ms=0,
            eviction_limit=10,
            staleness_grace_ms=None,
            reservations=0,
        ),
    )


def written(policy: Policy) -> dict[str, object]:
    """A policy the way that a file has it."""

    def value_of(name: str, value: object) -> object:
        if value is None:
            return "none"
        return f"{value // 1000}s" if name.endswith("_ms") and isinstance(value, int) else value

    def fields_of(struct: msgspec.Struct) -> dict[str, object]:
        return {
            name.removesuffix("_ms"): fields_of(value)
            if isinstance(value, msgspec.Struct)
            else value_of(name, value)
            for name, value in msgspec.structs.asdict(struct).items()
        }

    return fields_of(policy)


@pytest.mark.parametrize("preset", [OSMO, KUEUE, KAI])
def test_a_policy_that_is_written_out_is_read_back(preset: Policy):
    text = msgspec.json.encode(written(preset)).decode()

    assert PolicyRead(preset, []) == read(text)


def test_what_is_unknown_is_named_with_what_was_probably_meant():
    assert [
        ("gangs.minimum_runtme", "unknown field; did you mean minimum_runtime?", 2),
        ("gangs.minimum_runtime_ms", "unknown field; did you mean minimum_runtime?", 3),
    ] == problems("gangs:\n  minimum_runtme: 3s\n  minimum_runtime_ms: 3000\n")


@pytest.mark.parametrize(
    ("text", "field", "message"),
    [
        ("preset: osmos", "preset", "expected one of osmo, kueue, kai, not the text 'osmos'"),
        ("heads: frist", "heads", "did you mean first?"),
        ("order: [priority, time]", "order[1]", "expected one of holds_quota, nominated"),
        ("order: [priority, priority]", "order[1]", "priority stands here twice"),
        ("order: priority", "order", "expected a list"),
        ("partial_admission: 3", "partial_admission", "expected true or false"),
        ("gangs: {grace: 30}", "gangs.grace", "'30' is no duration; write it like 90s"),
        ("gangs: {grace: none}", "gangs.grace", "'none' is no duration"),
        ("gangs: {eviction_limit: -1}", "gangs.eviction_limit", "must be at least 0"),
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

    choices = [*Heads, *OrderKey, *RequeuingTimestamp, *Line, *GrowthTurn, *Packing]

    assert [] == [each.value for each in choices if f"`{each.value}`" not in text]
