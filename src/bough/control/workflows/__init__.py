"""Workflows: read, admit, store, change, show.

Submitting, in the order of a submission:

- submission: submitting: all checks and the rows, in one transaction
- restarting: a failed workflow once more, without what was completed
- read_submission: what is sent, or was sent before, into a spec
- rendering: renders templates, each in a process of its own
- renderer: that process
- specs: the text of a workflow into a spec, or all that is wrong with it
- group_to_gang: which tasks of a group are needed and which may be given up
- backend_abilities: whether a backend can run what is asked for; pure
- pool_data_urls: whether the data of pools that tasks name exists, and is open to the submitter
- store_credentials: whether the submitter has credentials for the object stores that tasks name
- target_pool: the pool that a workflow goes to, held while it is written
- admission: which workflows a pool takes; pure
- resource_rules: whether a task asks for what rules of its pool allow; pure
- submit_warnings: what the submitter should know although it is accepted
- apps: workflow files that the server keeps, in versions
- draft_rows: the rows of a submission

Changing:

- workflow_changes: one locked workflow being changed; the only place that changes task rows
- load_changes: loads and locks workflows for changes, and writes them
- cancelling: a workflow is cancelled: who may, and what its tasks are told
- arrays: accepted as one, made into workflows as there is room, shown and ended as one
- predecessors: workflows that start after the end of others
- lifecycle: what follows when an attempt ends; pure
- observations: what backends saw of attempts, and what follows
- moving: waiting work to another pool or priority
- archive: finished workflows into the archive, part by part, and found there
- history_export: finished workflows page by page for a file, and dropped

Showing:

- query: list, show, tag, why it waits
- label_selectors: the labels that a list is asked for
- preemptions: which group was preempted for which, as events
- task_list: tasks of all workflows
- logs: what tasks wrote, as one log
- attempt_log: the log of one attempt in it
- results: what completed tasks left behind
- pool_data: the data of a pool: lists, parts, drafts, removal
- sessions: who reaches into tasks that run, and the record of it
- output_locations: whether that is on another machine

In: requests of users, observations. Out: rows and events; views for the server.
"""
