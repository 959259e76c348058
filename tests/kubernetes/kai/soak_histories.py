"""The long form of `test_histories`; run by `make soak`."""

from __future__ import annotations

import pytest

from bough.kube.client import KubeClient
from tests.kubernetes.kai.test_histories import play


def test_two_thousand_histories_end_with_the_tree_and_never_have_too_much(
    admin: KubeClient, capsys: pytest.CaptureFixture[str]
):
    for part in range(10):
        figures = play(admin, f"soak-{part}", part, 200)
        with capsys.disabled():
            print(f"\n{figures}")  # noqa: T201
