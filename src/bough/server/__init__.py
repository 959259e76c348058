"""The server: HTTP over the use cases, and the place where everything is put together.

    settings              what a start is told
    recovery              `bough admin recover`: a new token for an administrator
    process               a start to its end: store, the loop's process, HTTP, signals
    child_watch           starts a process of the server, watches it, replaces it when it is gone
    child_process         imports what such a process runs, runs it, and ends it
    loop_watch            the process of the scheduler's loop, watched, and asked questions
    loop_messages         what the server and the loop's process say to each other
    process_channel       the line to each of the server's processes, which carries their messages
    loop_process          the loop's process: backends, scheduler, answers from its plan
    loop_view             what requests know of the loop
    process_start         what each process does first: log, bound its heaps, make the site
    workers/              several processes that answer requests, instead of the server itself
    http_server           HTTP as these or the server speak it
    listening_socket      the socket that the server listens on, taken over from the server before
    socket_holder         the small process that keeps it while no server runs
    data_folder           the data folder: making it, what shows that a site is in it
    backup                the database as a file, and back
    data_cleaner          removes the data of pools that was kept long enough
    disk_space            when a disk is nearly full; the reserve of the database
    repeated_work         what these two repeat in a thread, for as long as the server runs
    backend_file          which backends there are, by options or a file
    backend_hosts         which backends the loop opens, and what requests read of them
    connections           how many connections there can be, and how slow one can be
    bounded_counts        counts that have limits
    joined_socket_writes  what is sent to a connection in one turn of the event loop, as one piece
    memory_budget         what requests may take of the memory, from the bounds of other modules
    notifier              the thread that tells users what happened to their workflows
    notification_senders  e-mail by SMTP, webhooks by HTTP, and what may be sent
    scheduler_thread      the scheduler in a thread of the loop's process
    thread_liveness       notices that a thread hangs
    application           the routes as one application, and its description for programs
    server_key            proves to clients that this is the server that they logged in to
    middleware            before all routes: paths, the access log
    answer_cache          answers that are sent again as they are while nothing changes
    authenticator         the user of a request: token, pass or trusted proxy
    permissions           the permission that each route declares, and the guard that checks it
    client_versions       clients that are too old are refused, others hear of a newer one
    stream_access         whether an open stream is still allowed
    sessions              keys and lives of sessions with tasks, and how many there are
    serve_session         makes the connection of a request a session with a task, and watches it
    awaited_submissions   submissions that wait for the commit in the event loop, without a thread
    concurrency_limits    how many requests and streams of one user are served at once
    route_declaration     how a route is declared
    routes/               one module for each kind of thing; they do not know each other
    event_lines           what happened to a workflow, as lines of text
    workflow_documents, pool_documents  results of use cases as types of `bough.api`
    values                times, amounts, query parameters and notes on changes as they are sent
    error_answers         errors as answers
    metrics               figures for Prometheus
    example               a small organisation to look at

A request enters through `middleware` and `permissions`; its handler calls one use case of
`bough.control` and answers with a type of `bough.api`. No rule is decided here.
"""
