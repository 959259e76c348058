"""Every answer is what its type says: nothing is missing there, and nothing is sent beside it."""

from __future__ import annotations

import re
from types import NoneType

import msgspec
import pytest
from litestar.response import Stream

from bough.server.application import DECLARED
from tests.api.test_matrix import TABLE

#: By method and path, as the table of roles has them.
TYPES = {(each.method, re.sub(r":(?:str|int)\}", "}", each.path)): each.answer for each in DECLARED}


_WEBSOCKET = re.compile(r"/api/(router/[a-z]+/\{workflow\}/client/|logger/).*")


def test_the_tour_asks_every_route(visited):
    # Websockets are no requests with an answer; tests/e2e has them.
    asked = {each for each in TABLE if not _WEBSOCKET.fullmatch(each[1])}
    assert asked == {(each.method, each.template) for each in visited}


@pytest.mark.parametrize(("method", "path"), sorted(TABLE))
def test_an_answer_is_decoded_into_its_type_without_loss(visited, method, path):
    kind = TYPES[method, path]
    answers = [each for each in visited if (each.method, each.template) == (method, path)]

    for each in answers:
        content = each.response.content
        if kind in (Stream, str) or each.response.headers["content-type"].startswith("text/"):
            assert content
            continue
        found = msgspec.json.decode(content, type=kind or NoneType)
        again = msgspec.json.encode(found)
        assert msgspec.json.decode(content) == msgspec.json.decode(again), each.path
