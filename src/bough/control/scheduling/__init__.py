"""The scheduler's loop: observe, snapshot, plan, apply, tell the backends.

- loop: one cycle after another, woken by changes or a tick; one server at a time
- loop_bell: what wakes the loop
- backend_watch: asks one backend for its nodes and attempts, and stores the answers
- node_tests: clusters that test their nodes are told which tests there are
- cluster_queues: queues of clusters that follow Bough's; repairs, recorded
- tree_export: the tree for clusters with another scheduler, and what it cannot say there
- machine_backends: backends of one machine; which server speaks for each, which does not answer
- snapshot: the store at one moment as a Snapshot for the core; keeps what did not change
- other_pods: what others hold of the nodes, as gangs that no plan touches
- live_workflows: unfinished workflows in memory, in step with the store
- gave_way: which groups were preempted for which, for policies by which nothing is taken back
- wait_causes: why groups wait, stored once for each cause
- apply_plan: a plan becomes true in one transaction; a stale one is discarded
- task_templates: the pod templates of a task, with its variables in them
- data_access: the data of pools that tasks name, if their users may still use it
- input_sources: which attempts left what tasks read
- gang_terms: what a scheduler of a cluster must know to place a group
- outbox: sends decisions to the backends, again until they have them
- attempt_starts: what backends are told to start attempts: specs, secrets, data, templates
- after_restore: forgetting what was true before a restore; ending what runs without a record
- timeouts: groups that wait or run for longer than their workflow allows
- live_plan: the loop's view and the memo of its plan, which questions are answered from
- plan_questions: what the live plan is asked, and answers; perhaps in another process
- explanation: why a workflow waits, by asking the live plan; nothing of it is applied
- pool_remedies: what would help, in the words of pools

In: rows of the store, observations of backends. Out: rows, events, outbox messages.
"""
