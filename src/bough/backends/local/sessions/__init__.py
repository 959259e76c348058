"""Sessions with a running task: a command in it, its ports, its files.

The server connects to the door of an attempt, a Unix socket in its folder, and says what it wants.
The supervisor forks a process for the session. The server hands it the connections of the client,
which it serves as websockets by itself: nothing of what is sent passes through the server. What
runs in the task has its namespaces, control group, account, limits and environment.

A session ends when its client closes or is gone, when the server closes its line (because a right
was taken, or since it ended itself), and with the task. The supervisor ends what is left of it.

    opening          the server's side: opens a session, and speaks with it
    door             the supervisor's side: lets sessions in, and ends what is left of them
    session_process  a session from its request to its end
    exec_relay       a command with a terminal or with pipes, and its client
    port_relay       connections and datagrams to a port, and their client
    rsync_daemon     rsync in the task
    task_process     starts a command in a running task
    joining          enters the namespaces of a running task
    session_group    the control group of a session, below that of its task
"""
