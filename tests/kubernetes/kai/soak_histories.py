"""The long form of `test_histories`; run by `make soak`."""

from __future__ import annotations

import pytest

from bough.kube.client import KubeClient
from tests.kubernetes.kai.test_histories import play

#: Two thousand histories in all; `-k seed7` has those of one seed.
SEEDS, HISTORIES = 10, 200


@pytest.mark.parametrize("seed", range(SEEDS), ids="seed{}".format)
def test_two_thousand_histories_end_with_the_tree_and_never_have_too_much(
    seed: int, admin: KubeClient, capsys: pytest.CaptureFixture[str]
):
    figures = play(admin, f"soak-{seed}", seed, HISTORIES)
    with capsys.disabled():
        print(f"\n{figures}")  # noqa: T201
