"""Sessions with a running task: a command in it, its ports, its files.

The server connects to the door of an attempt, a Unix socket in its folder, and sends a request. The
supervisor forks a process for the session. The server hands this process the client's connections,
which it serves as websockets itself: no data passes through the server. Whatever the session runs
in the task has the task's namespaces, control group, account, limits and environment.

A session ends when its client closes it or is gone, when the server closes its line (because a
permission was revoked, or because the server ends), and with the task. The supervisor ends what is
left of it.

    opening          the server's side: opens a session, and talks to it
    session_socket   the supervisor's side: accepts sessions, and ends what is left of them
    session_process  a session from its request to its end
    exec_relay       a command with a terminal or with pipes, and its client
    port_relay       connections and datagrams to a port, and their client
    rsync_daemon     rsync in the task
    log_relay        lines for the log of the task, and their client
    task_process     starts a command in a running task
    task_namespaces  enters the namespaces of a running task
    session_group    the control group of a session, below that of its task
"""
