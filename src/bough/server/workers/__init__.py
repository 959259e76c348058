"""Several processes that answer HTTP, with `bough serve --workers`.

    shared_counts       counts that all workers share, in memory that they all see
    messages            what a worker and the server say to each other
    passed_connections  connections that go from one process to another
    worker_watch        starts a worker, watches it, and answers what it asks
    worker_requests     what workers ask the server for: the loop's plan, keys of sessions, turns
    dispatch            accepts connections and gives each to the worker with the fewest
    supervision         all of that together, from the start to the end of a server
    server_link         a worker's side of the line to the server
    worker_sessions     sessions of which one worker has the line, and another gets a connection
    worker_process      the process of a worker

The server itself holds the socket, watches the loop and the workers, and answers no request.
"""
