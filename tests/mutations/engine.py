"""What may go wrong in the engine and in what it reads."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = (
    Mutation(
        "a pod joins a gang of another namespace by its name",
        "    if group and not _CAN_BE_NAME.fullmatch(group):\n",
        "    if False:\n",
        "tests/unit/test_pod_scheduler_hostile.py -k joins",
    ),
    Mutation(
        "a native PodGroup is taken for KAI's of the same name",
        '    return f"{full_name}{NATIVE}" if native else full_name\n',
        "    return full_name\n",
        "tests/unit/test_native_groups.py",
    ),
    Mutation(
        "what is disrupted whole is given back pod by pod",
        "    if not pod_group.disrupted_whole or least is None:\n",
        "    if True:\n",
        "tests/unit/test_native_groups.py",
    ),
    Mutation(
        "a credential leads the server to an address that is not allowed",
        "    if origin in {origin_of(each) for each in allowed}:",
        "    if origin:",
        "tests/unit/test_object_store_urls.py tests/api/test_submission.py -k store",
    ),
    Mutation(
        "a store is written without a key, so that the library looks for one of the machine",
        "        return bool(self.access_key)",
        "        return True",
        "tests/e2e/test_other_stores.py -k everyone",
    ),
    Mutation(
        "an undo is dropped",
        "            else:\n                holder[key] = before\n",
        "            else:\n                pass\n",
        "tests/unit/test_undo.py",
    ),
    Mutation(
        "the borrowing limit is ignored",
        "        if account.borrowing_limit is not None:\n"
        "            allowed = kept + account.subtree_quota - account.usage",
        "        if False:\n            allowed = kept + account.subtree_quota - account.usage",
        "tests/unit/test_quota_tree.py",
    ),
    Mutation(
        "the lending limit is ignored",
        "account.local_quota = 0 if limit is None else max(0, account.subtree_quota - limit)",
        "account.local_quota = 0",
        "tests/unit/test_quota_tree.py",
    ),
    Mutation(
        "fair shares: what gave way takes back",
        "frozenset(self.progress(name).gave_way_to) if self.policy.gives_way_once else _NONE",
        "_NONE",
        "tests/unit/test_cycle_fair.py",
    ),
    Mutation(
        "fair shares: what was promised is not given",
        "progress.promised if keeps_promises else ()",
        "()",
        "tests/unit/test_cycle_fair.py",
    ),
    Mutation(
        "fair shares: what is idle is divided evenly",
        "got[at] += step * heavy[at]",
        "got[at] += step",
        "tests/unit/test_fair_now.py",
    ),
    Mutation(
        "fair shares: victims are not looked for again once a sibling gave something back",
        "self._agreed(found) or self._search_again(borrowing=borrowing)",
        "self._agreed(found)",
        "tests/unit/test_cycle_kai.py",
    ),
    Mutation(
        "fair shares: others give for what a sibling does not really give",
        "return self._agreed(self._search(order))",
        "return self._search(order)",
        "tests/unit/test_cycle_kai.py",
    ),
    Mutation(
        "fair shares: surplus of a higher priority ends before gangs of a lower one",
        "self._surplus((c for c in elastic if c.standing.priority == priority), reach)",
        "self._surplus(elastic, reach)",
        "tests/unit/test_cycle_kai.py",
    ),
    Mutation(
        "fair shares: what is moved is not lifted again",
        "(each.name in outcome.moved or _is_undecided(outcome, each))",
        "_is_undecided(outcome, each)",
        "tests/unit/test_cycle_moves.py",
    ),
    Mutation(
        "fair shares: what stays after all is waited for",
        "                    self._wait_no_more(claim.name)\n",
        "                    pass\n",
        "tests/unit/test_cycle_moves.py",
    ),
    Mutation(
        "moves: what moves loses its quota",
        "        copy.use(claim, usage, waits=True)\n",
        "",
        "tests/unit/test_cycle_moves.py",
    ),
    Mutation(
        "moves: growth that was promised is taken for a move",
        "[pod for pod in claim.ending if known.nominated and pod.name in known.places]",
        "[pod for pod in claim.gang.pods if known.nominated and pod.name in known.places]",
        "tests/unit/test_cycle_moves.py",
    ),
    Mutation(
        "moves: a gang stands first for all that it may grow",
        "if not known.nominated or not copy.has_changed(claim):",
        "if True:",
        "tests/unit/test_cycle_moves.py",
    ),
    Mutation(
        "fair shares: pod sets take victims while free room is given",
        "if not takes and judgement.outlook is not Outlook.AT_ONCE:",
        "if not takes and judgement.outlook is Outlook.NOTHING:",
        "tests/unit/test_cycle_free_first.py",
    ),
    Mutation(
        "fair shares: what ends in a cycle still counts for the largest share",
        "                self._weigh(claim, (pod,), add=False)\n",
        "",
        "tests/property/test_dominant_share.py",
    ),
    Mutation(
        "fair shares: the largest share is not asked for",
        "taken = dominant.rank(seat.node, contender.queue, contender.request)",
        "taken = (False, 0)",
        "tests/scenarios/test_schedule_scenarios.py",
    ),
    Mutation(
        "fair shares: the first of a strict queue is passed",
        "priority = priority if strict else FIRST",
        "priority = FIRST",
        "tests/property/test_mixed_forms.py",
    ),
    Mutation(
        "a subpool that drains keeps its quota",
        "return self.quota if self.state is SubpoolState.ACTIVE else 0",
        "return self.quota",
        "tests/store/test_scenarios_queues.py -k 009",
    ),
    Mutation(
        "half a gang starts",
        "        missing = root.minimum - has\n",
        "        missing = max(1, (root.minimum - has) // 2)\n",
        "tests/unit/test_gang_demand.py tests/scenarios/test_schedule_scenarios.py",
    ),
    Mutation(
        "the tie-break of lines is dropped",
        "waits_since(gang, policy), gang.uid, gang.name)",
        'waits_since(gang, policy), gang.uid, "")',
        "tests/unit/test_cycle_gangs.py -k name_decides",
    ),
    Mutation(
        "cordons are ignored",
        "matched & tolerated & ~self.cordoned",
        "matched & tolerated",
        "tests/unit/test_place_node_matching.py tests/store/test_nodes.py",
    ),
    Mutation(
        "a required topology is ignored",
        "    widest = 0 if required is None else required\n",
        "    widest = 0\n",
        "tests/unit/test_place_domains.py tests/unit/test_place_gang.py",
    ),
    Mutation(
        "the minimum of subgroups is ignored",
        "minimum = everything if source.minimum is None else source.minimum",
        "minimum = everything",
        "tests/unit/test_gang_sufficiency.py tests/unit/test_gang_demand.py",
    ),
    Mutation(
        "what is guaranteed is reclaimed",
        "        if not claim.preemptible:\n            return False\n"
        "        return not self._copy.runtimes_matter or",
        "        return not self._copy.runtimes_matter or",
        "tests/unit/test_cycle_kai.py",
    ),
    Mutation(
        "what was told to end has ended at once",
        "        self.log.put(self._apart_by, 0, self._apart_by[0] + 1)\n",
        "",
        "tests/unit/test_ledgers.py",
    ),
    Mutation(
        "the limit of users is ignored",
        "    if not limits or claim.preemptible or not claim.gang.owner:\n",
        "    if limits or not limits:\n",
        "tests/store/test_scenarios_admission.py -k user",
    ),
    Mutation(
        "a webhook is sent wherever a user wants",
        "        if origin not in {origin_of(each) for each in self.webhooks}:",
        "        if False:",
        "tests/api/test_notifications.py -k has_not_allowed",
    ),
)
