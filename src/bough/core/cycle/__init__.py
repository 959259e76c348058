"""The scheduling cycle: `plan()`, for every kind of gang and every policy.

A snapshot and a policy enter by `plan.plan`; a plan leaves, and `waits` reads it. Modules in the
order in which to read them:

The cycle

- plan: the whole cycle on one screen
- cycle: what one cycle works with, and which gangs must not be passed
- outcome: what was decided so far, as a plan
- turns: in which order gangs are served, and which of them a cycle looks at
- together: gangs that are judged against one state, then put in order and decided
- drained_and_stale: queues that are drained, and gangs that have run incomplete for too long
- grow: optional units of elastic gangs

One gang

- gates: what bars a gang however much quota and room there is
- offers: what a gang of pods needs, and the ways to get it
- consolidation: moves running gangs so that another one fits
- decide_pod_gang: a gang of pods starts, has room freed for it, or gets a reason
- reserve: what a gang that only lacks a place keeps from others
- judge: what a gang of pod sets could get as things are
- flavors: which flavor of its queue each pod set gets
- needs: what a gang needs of the flavors of its queue
- shape_needs: the same for gangs of one shape, worked out once, with what they were found to get
- flavor_eligibility: whether a flavor suits the pods of a set
- partial_admission: the most pods for which a gang of pod sets has quota
- decide_pod_sets: a gang of pod sets gets quota, has room freed for it, or gets a reason
- reasons: why a gang waits, as the plan carries it

Victims

- preemption: the search for the victims of one gang: enough quota, and enough room
- candidates: which gangs may be evicted for which, and in what order
- giving_queues: where shares decide, which queue gives back next, and whether it may be made to
- fair_giving_queues: the same where fair shares of what all ask for decide
- reclaim_tiers: from which other queues a gang may take, and over which it has the advantage
- victim: what ends together: a gang, or a part of it
- victims: the search loop: take in order until it fits, put back what is not needed
- best_victims: a better set of victims, where there is one
- room: whether there would be a place, asked again and again as victims are taken and put back

The state

- working_copy: the one mutable thing of a cycle, with marks and undo
- claim: one gang in it; `shape_of`, equal for gangs that are alike
- queue_line: the gangs that wait in a queue, alike ones together
- queue_order: which gang goes first, in line and as a victim
- idle_turns: the next gang of each queue while idle capacity is shared
- contest: whose turn it is, at every level of the tree: by weight for idle capacity, else by shares
- fair_order: the order of turns where shares decide
- dominant_shares: the largest share of GPUs, CPU and memory, where it decides who gets what is idle
- forest: the quota tree as a cycle walks it, with the gangs that hold quota
- ledgers: guaranteed use, total use to come, and present use
- quota_cost: how much a pod counts against the quota of its queue

Between cycles

- memo: the working copy and the last plan, kept for the next cycle
- waits: why each gang waits, read from a plan that names alike gangs once
- waiting_lines: which gangs wait and which are parked, for callers that judge heads cycle by cycle
- gave_way: which gangs were evicted for which, for policies by which none takes back from those
"""
