"""Frozen types that every layer shares: what things are, never what is decided about them.

What is decided about

- snapshot: everything a decision may depend on
- gang: the one workload type, a tree of subgroups over pods
- cluster: nodes, what they offer, how they are wired, which pods may use them
- quota: cohorts and queues, as they are declared
- queue_tree: the queues that a cluster should have, and what was found there
- admission_rules: the rules of a queue
- policy: how a cycle decides, and the presets
- gang_rules: the part of a policy that concerns gangs with pods
- place_policy: the part that concerns places

What is decided

- plan: starts, ends, nominations and waits
- reason: why the quota tree refuses, and why a gang waits
- words: how sentences name nodes of the quota tree, and write amounts
- shortage: what a gang without a place lacks
- certificate: why a gang waits or is evicted, in full
- remedy: what would help

As people write it

- pod_group: PodGroups of KAI
- fair_queue: Queues of KAI
- workload: Workloads, flavors and local queues of Kueue
- organisation: all objects of Kueue together
- problem: what is wrong with an object

What a server keeps

- app: workflow files under a name, in versions
- workflow: workflows, arrays of them, groups and tasks
- labels: the policy for labels of workflows, and how they are asked for
- array: how often a workflow is there, and what differs
- past_workflow: finished workflows, everything about each in one value
- task_template: what a task is made of where it runs
- transitions: the statuses of tasks, groups and workflows
- pool: pools and what is configured for them
- subpool: subpools and their states
- pod_placement: which nodes tasks select, and which taints they tolerate
- names: names of pools, subpools and queues
- access: users, their profiles and credentials, roles and what they allow
- change_record: audit, history and events
- node_test: tests of nodes by schedule
- notification: what users are told outside of the server, and where that may go
- settings: settings that can be changed while it runs
- usage_stretch: what was held, and for how long
- backend: the protocol of backends
- pool_data: files that live with a pool, and the protocol of what keeps them
- object_store: object stores that URLs name, and the credentials that open them
- session: what is asked of a running task: a command, a port, its files
- result: results of tasks, and the protocol of what keeps them
- safe_regex: the rule for regular expressions that users write
"""
