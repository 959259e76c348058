"""Workflows: read, admit, store, change, show.

submission         submitting and restarting: all checks and the rows, in one transaction
read_submission    what is sent, or was sent before, into a spec
rendering          templates, each rendered by a process of its own: `renderer`
specs              the text of a workflow into a spec, or all that is wrong with it
group_to_gang      which part of a group's gang each task is
admission          which workflows a pool takes; pure
submit_warnings    what the submitter should know although it is accepted
new_records        the rows of what is submitted
workflow_changes   one locked workflow being changed: the only writer of task rows
load_changes       loads and locks workflows for changes, and writes them
lifecycle          what follows when an attempt ends; pure
observations       what backends saw of attempts, and what follows
moving             waiting work to another pool or priority
query              list, show, cancel, tag, why it waits
preemptions        for which group a group was preempted, as events
task_list          tasks of all workflows
tags, logs         tags; what tasks wrote, as one log

In: requests of users, observations. Out: rows and events; views for the server.
"""
