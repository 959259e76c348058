"""Scenarios 163 to 180 of a hundred GPUs and of subpools, told of pods instead of processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.test_local_large import (  # noqa: F401 - told here once more
    test_scenario_163_guaranteed_work_takes_back_just_what_it_needs,
    test_scenario_166_idle_gpus_are_shared_by_weight,
    test_scenario_167_a_subpools_guarantee_is_reclaimed_from_a_whole_gang,
    test_scenario_167_an_elastic_gang_gives_back_only_what_it_can_spare,
    test_scenario_175_any_number_of_low_never_delays_what_is_guaranteed,
    test_scenarios_164_and_165_low_waits_and_normal_preempts_its_own_pools_low,
)
from tests.e2e.test_local_subpools import (  # noqa: F401 - told here once more
    divided,
    test_scenario_176_who_comes_first_no_longer_gets_all,
    test_scenario_177_who_is_in_no_group_has_what_is_shared_and_low_beyond,
    test_scenario_180_the_full_life_of_a_subpool,
    test_scenarios_030_090_and_179_a_subpool_pauses_and_its_history_stays,
    test_scenarios_080_081_and_178_quotas_shrink_and_subpools_drain_while_work_goes_on,
)
from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.conftest import fresh_namespace, make_bed
from tests.kubernetes.served import Clustered, ClusterHosting, clustered


@pytest.fixture(scope="module")
def large_bed() -> Iterator[Bed]:
    """One node of 100 GPUs."""
    yield from make_bed(100)


@pytest.fixture(scope="module")
def large_server(large_bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clustered]:
    with clustered(tmp_path_factory.mktemp("large"), large_bed, "large") as host:
        yield host.start()


@pytest.fixture
def large(large_server: Clustered) -> Iterator[Clustered]:
    """A hundred GPUs and nothing else; tasks are pods."""
    yield large_server
    large_server.clear()


@pytest.fixture
def host(large_bed: Bed, tmp_path: Path) -> Iterator[ClusterHosting]:
    """A server of one test alone, with a hundred GPUs; it is started by the test."""
    with clustered(tmp_path, large_bed, fresh_namespace()) as found:
        yield found
