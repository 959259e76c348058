"""The wire: every request and every answer of the server as one type.

The routes build these types, the Python client decodes into them, and the command line reads them,
so the type checker sees a field that one side lacks. The description at /api/openapi.json is made
from them as well.

    common          JSON of any form, and the body of errors
    pools           pools, subpools, cohorts and queues
    workflows       submissions, workflows and tasks
    apps            workflow files that a server keeps, in versions
    pool_data       the data of pools, and listings of object stores
    results         results of tasks, and downloads of them
    sessions        where the websocket of a session with a task is opened
    why             why a workflow waits: certificates and remedies
    nodes           nodes, backends and GPU-hours
    people          users, roles, tokens, credentials, the profile, logging in
    configs         configuration as it is sent; settings, policy, history and audit
    history_export  finished workflows to be kept elsewhere, and the file of an export
    system          version, health, key and events
    file_answers    answers of the commands that read files and need no server
    quota_answers   answers of `bough quota`, one of these commands
    kube_answers    answers of `bough kube`: why pods wait, drift, exported trees

Data enters and leaves here as JSON. Times are UTC without a zone, to the millisecond. A field that
has a default of `None` in a type with `omit_defaults` is left out of the JSON where it is `None`;
every other field is always sent.
"""
