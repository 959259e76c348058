"""Use cases, each in one transaction with its rules, and the scheduler's loop.

Folders, each of which imports only from those below it:

- scheduling: the loop: observe, snapshot, plan, apply, tell the backends
- nodes: what backends offer; cordon and drain
- workflows: a workflow from what is sent to its last event: read, admit, store, change, show
- records: what happened: audit, history, events, GPU hours
- pools: pools, subpools and cohorts; their quotas, and the quota tree they make
- config: settings of the server, and the policy by which cycles decide
- people: users, roles, tokens, profiles, and what each may do

Modules beside them:

- startup: what a server does first
- change_recording: audit, history and event of a change
- fair_turns: fair turns for work that only a few can do at one time
- fields: numbers and durations as people send them
- gangs_of_groups: groups of workflows as gangs of the core
- credential_keys: the keys that encrypt credentials and the key of passes, in a file
- site: store, clock, fresh identities, the bell of the loop
- setup_cache: what requests ask again and again, kept for as long as a counter stays the same
- joined_submissions: submissions at the same time in one transaction
- clock: time that does not jump when the machine's clock is set

Requests enter through the functions that the routes of the server call: each takes the site, the
actor, and what is asked for. It asks `people.access` whether the actor may, checks the rules while
the rows they are about are locked, and writes the change with its records in one transaction.
Decisions leave through `scheduling.outbox` to the backends; what backends saw comes back through
`workflows.observations`.
"""
