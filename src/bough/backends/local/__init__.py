"""The local backend: tasks are processes of this machine that outlive the server.

A start enters by `LocalBackend.start`, which writes the attempt's files and asks the fork server
for a supervisor. The supervisor prepares the tasks, runs them in their sandboxes, writes their logs
and their end. `LocalBackend.observe` and `read_log` read what it wrote. The server and supervisors
share nothing but files, so either can be of another version.

    backend            the Backend protocol: start, stop, observe, forget, read_log
    task_files         what tasks wrote, and the way into them; for every process of the machine
    observed_attempt   one attempt as the server sees it; ends what its supervisor left
    finished_attempts  keeping and deleting attempts whose end is recorded
    gpu_slots          which attempt has which GPU
    detect_nodes       the nodes, CPUs, memory and disk that the machine offers
    detect_gpus        the GPUs that nvidia-smi lists
    supervisor/        the processes that run tasks
    sessions/          commands, ports and files of tasks that run
    preparation/       from a task's spec to a command
    sandbox/           what a task sees and how much it can use
    images/            images of a folder: root folders and OCI archives
    data/              copying and removing files of tasks
    pool_data/         the data of pools, `bough://POOL/path`
    attempt_folder     where the files of attempts are
    attempt_state      the state file, shared by server and supervisor
    order_lease        whose orders count
    task_command       a prepared task, in plain values
    options            the settings
    errors             what can go wrong with one task
"""
