"""Scenarios 143 to 172 of priorities and borrowing, as they are told of processes, with pods."""

from __future__ import annotations

from tests.e2e.test_local_borrowing import (  # noqa: F401 - told here once more
    test_scenario_158_normal_never_borrows,
    test_scenario_160_borrowing_ends_at_the_maximum_and_at_the_nodes,
    test_scenario_168_pools_reclaim_from_pools_and_subpools_from_their_siblings,
    test_scenario_169_a_gang_has_all_its_processes_or_none,
    test_scenario_171_low_overtakes_what_waits_for_quota,
    test_scenarios_156_157_161_and_172_what_is_borrowed_is_reclaimed_and_had_again,
    test_scenarios_159_and_162_low_of_a_pool_within_its_quota_is_safe_from_others,
)
from tests.e2e.test_local_priorities import (  # noqa: F401 - told here once more
    test_scenario_151_all_three_conditions_of_preemption_are_needed,
    test_scenario_152_what_would_exceed_the_quota_preempts_nothing,
    test_scenario_153_nothing_is_preempted_in_vain_and_the_newest_goes_first,
    test_scenario_154_exit_actions_decide_what_follows_a_preemption,
    test_scenario_155_preemptions_can_be_limited,
    test_scenario_170_the_submit_time_is_kept_over_many_preemptions,
    test_scenario_174_workflows_are_listed_by_priority_and_status,
    test_scenarios_143_and_173_only_low_is_warned_that_it_may_be_preempted,
    test_scenarios_144_to_146_the_queue_is_by_priority_then_by_time,
    test_scenarios_147_and_148_quota_counts_although_gpus_are_idle_but_not_for_low,
    test_scenarios_149_and_150_what_is_preempted_is_queued_in_its_old_place,
)
