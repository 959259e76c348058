"""The processes that run tasks.

The server asks the fork server for a supervisor of some attempts. The supervisor reads their
`launch.json`, forks each task, and writes logs and state files; it tells the server by a pipe.

    fork_server         forks supervisors
    fork_server_client  the server's side of it
    supervisor_process  one process that supervises start after start
    supervisor          runs the tasks of one start, together or not at all
    supervised_task     one task of a supervisor
    group_network       the network of a group, shared by its supervisors
    exec_task           from a forked copy to the task's program
    ptrace              stops a program at its first instruction
    event_loop          what a supervisor waits for
    forked_work         slow work in a forked process
    background_jobs     that work: preparing, copying, cleaning up
    supervisor_events   the pipe from supervisors to the server
    processes           finding and killing processes
    instructions        what the server tells supervisors
"""
