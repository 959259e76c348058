"""The server: HTTP over the use cases, and the place where everything is put together.

    settings            what a start is told
    recovery            `bough admin recover`: a new token for an administrator
    process             a start to its end: store, scheduler, HTTP, signals
    listening           the socket that the server listens on, taken over from the server before
    socket_holder       the small process that keeps it while no server runs
    data_folder         the data folder: making it, what shows that a site is in it
    backup              the database as a file, and back
    disk_space          when a disk is nearly full; the reserve of the database
    hosting             which backend the server opens, and the folders that it needs
    connections         how many connections there can be, and how slow one can be
    engine              the scheduler in its thread
    application         the routes as one application, and its description for programs
    server_key          proves to clients that this is the server that they logged in to
    middleware          before all routes: paths, the access log
    authenticator       the user of a request: token, pass or trusted proxy
    permissions         the permission that each route declares, and the guard that checks it
    stream_access       whether an open stream is still allowed
    concurrency_limits  how many requests and streams of one user are served at once
    declare             how a route is declared
    routes/             one module for each kind of thing; they do not know each other
    documents, pool_documents   results of use cases as types of `bough.api`
    values              times, amounts and query parameters as they are sent
    failures            errors as answers
    metrics             figures for Prometheus
    example             a small organisation to look at

A request enters through `middleware` and `permissions`; its handler calls one use case of
`bough.control` and answers with a type of `bough.api`. No rule is decided here.
"""
