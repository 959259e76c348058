"""The server: HTTP over the use cases, and the place where everything is put together.

    settings        what a start is told
    process         a start to its end: store, scheduler, HTTP, signals
    application     the routes as one application
    gate            before everything: paths, the access log
    identity        who asks
    permission      whether they may: each route says what it needs, and what says nothing is denied
    failures        errors as answers
    declare         how a route is declared
    routes/         one module for each kind of thing
    documents, pool_documents   results of use cases as types of `bough.api`
    values          times, amounts and query parameters as they are sent
    example         an organisation to look at

Must not know any rule: a handler reads what was sent, calls one use case, and writes the answer.
"""
