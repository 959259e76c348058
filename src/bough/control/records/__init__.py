"""What happened: audit, history of configuration, events, GPU hours.

- change_history: audit, revisions with diffs, rollback
- event_stream: following events as far as the follower may see them
- notifications: telling users of ends, preemptions and drains
- usage: GPU hours by pool or user
- accounting: how they are counted: guaranteed, preemptible, borrowed; pure

In: what `change_recording` wrote with every change. Out: views; a rollback is a change like any
other.
"""
