"""Certificates as data: one form for files and servers, which the commands can always print."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from bough.api.why import WhyAnswer
from bough.cli.text.why import render_why
from bough.control.pools.pool_words import PoolWords
from bough.control.site import Site
from bough.formats.certificates import certificate_answer, plain, remedy_list
from bough.model.certificate import (
    Certificate,
    FlavorOption,
    Holder,
    Ledger,
    Missing,
    Verdict,
)
from bough.model.cluster import Resources
from bough.model.plan import PodShortage
from bough.model.quota import FlavorResource, NodeKind, TreeNode
from bough.model.reason import Refusal, RefusalKind
from bough.model.remedy import Raise, Remedies, Remedy, RemedyKind
from bough.model.shortage import Cause, DomainRoom, Lack, NodeCount, Short, Together
from tests.answer_types import complete

LEAF = TreeNode(NodeKind.QUEUE, "osmo-pool-ns-team--a")
GPU = FlavorResource("any", "gpu")
REFUSAL = Refusal(RefusalKind.OVER_QUOTA, LEAF.name, GPU, 4, 0, 8, LEAF, 0, 4, 0)
BEGIN = ("w-1/g", LEAF.name, Verdict.WAITS, "it waits")
CERTIFICATES = (
    Certificate(
        *BEGIN,
        "quota",
        refusal=REFUSAL,
        ledger=Ledger.GUARANTEED,
        options=(FlavorOption("a", refusal=REFUSAL), FlavorOption("b", "no such nodes")),
        missing=Missing("gpu", 4, "any"),
        holders=(Holder("w-0/g", LEAF.name, 8, 8),),
        kept_for=("w-0/g",),
    ),
    Certificate(
        *BEGIN, "pods", shortages=(PodShortage("g", 1, 0), PodShortage("s", 2, 1, leaf=False))
    ),
    Certificate(
        *BEGIN,
        "place",
        lacks=(
            Lack(
                "g",
                2,
                1,
                Resources(gpus=4),
                tuple(NodeCount(cause, 1, "gpus") for cause in Cause),
                Together("t", "rack", 2, (DomainRoom("a", 1),), 3, pinned=False),
            ),
        ),
        short=(Short("s", 2, 1, 3),),
        unresolved=("g names no topology",),
    ),
    Certificate(*BEGIN, "behind", head="w-0/g"),
    Certificate(*BEGIN, "tangled", cycle=("a", "b")),
    *(Certificate("w-1/g", LEAF.name, verdict, "so it is") for verdict in Verdict),
)
REMEDIES = Remedies(
    tuple(Remedy(kind, "raise its quota", steps=(Raise(LEAF, GPU, 4),)) for kind in RemedyKind),
    plans=3,
    given_up=(RemedyKind.WAIT,),
)


def served(certificate: Certificate) -> Any:
    """A group of `workflow why` as a client gets it."""
    words = PoolWords(Site(store=None, namespace="ns"))  # type: ignore[arg-type]
    remedies = plain(REMEDIES, words)
    for each in remedies["found"]:
        each["sentence"] = "do it"
    group = {
        "group": "g",
        "status": "SCHEDULING",
        "reason": certificate.reason,
        "message": certificate.sentence,
        "certificate": plain(certificate, words),
        "remedies": remedies,
    }
    return json.loads(json.dumps({"workflow": "w-1", "status": "PENDING", "groups": [group]}))


@pytest.mark.parametrize("certificate", CERTIFICATES, ids=lambda each: each.reason or each.verdict)
def test_a_certificate_of_a_server_can_be_printed(certificate: Certificate):
    answer = served(certificate)
    for each in answer["groups"][0]["remedies"]["found"]:
        del each["steps"]
    found = msgspec.convert(complete("GET", "/api/workflow/w-1/why", answer), WhyAnswer)
    text = render_why("w-1", found)

    assert text.startswith("w-1/g ")
    assert "osmo-pool" not in text


@pytest.mark.parametrize("certificate", CERTIFICATES, ids=lambda each: each.reason or each.verdict)
def test_the_type_of_a_certificate_lacks_nothing_of_it(certificate: Certificate):
    assert plain(certificate) == json.loads(msgspec.json.encode(certificate_answer(certificate)))


def test_remedies_are_told_without_their_steps():
    whole = plain(REMEDIES)
    for each in whole["found"]:
        del each["steps"]

    assert whole == json.loads(msgspec.json.encode(remedy_list(REMEDIES)))


def test_what_follows_from_a_certificate_is_told_with_it():
    shown = plain(CERTIFICATES[0])["refusal"]

    assert (4, False, {"kind": "queue", "name": LEAF.name}) == (
        shown["deficit"],
        shown["never"],
        shown["node"],
    )
    assert [1, 1] == [each["missing"] for each in plain(CERTIFICATES[1])["shortages"]]


def test_a_node_of_the_tree_is_told_as_a_pool():
    group = served(CERTIFICATES[0])["groups"][0]

    assert {"kind": "pool", "name": "team--a"} == group["certificate"]["refusal"]["node"]
    raised = group["remedies"]["found"][-1]["steps"][0]
    assert {"kind": "pool", "name": "team--a"} == raised["node"]


def test_cores_and_memory_are_written_as_people_write_them():
    holder = Holder("w-0/g", LEAF.name, 2_500, 2_000)
    certificate = Certificate(*BEGIN, "place", missing=Missing("cpu", 1_500), holders=(holder,))
    answer = served(certificate)
    for each in answer["groups"][0]["remedies"]["found"]:
        del each["steps"]
    found = msgspec.convert(complete("GET", "/api/workflow/w-1/why", answer), WhyAnswer)

    (row,) = [line.split() for line in render_why("w-1", found).splitlines() if "w-0/g" in line]

    assert ["w-0/g", "team--a", "2500m", "2"] == row[:4]
