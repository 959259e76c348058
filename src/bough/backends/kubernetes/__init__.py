"""The backend `kubernetes`: every attempt is one pod, on the node that the plan gave it.

A start enters by `KubernetesBackend.start`, which only notes it; workers create the pod, then its
Secrets. Two watches report all nodes and pods, and from them `observe` says how far attempts are.
What is kept outside the server is what the apiserver has: a new server finds it there.

    backend             the Backend protocol: start, stop, observe, forget, read_log
    attempt_state       one attempt: what is wanted of it, what its pod says, what is next
    pod_writer          the requests that change something, one for each step
    group_services      the Services of groups: made, and deleted with the last attempt
    group_objects       objects that group templates ask for: made, and deleted likewise
    node_tests          tests of nodes by schedule: a CronJob for each
    work_queue          which attempt has something to do, and who does it
    pod_manifest        the Pod, the Secrets and the Service of an attempt
    data_folders        the folders of attempts on a claim, and the script that makes and drops them
    data_cleaner        the pod that drops what did not complete
    template_merge      pod templates on top of each other
    pod_view            what a pod says of its attempt
    cluster_state       nodes as last heard of, and what pods of others hold on them
    node_view           a node as it is offered; what a pod holds
    pod_files           reading the logs that are kept, for every process of the machine
    log_keeper          which logs are followed, and when they are whole
    log_follower        reading the log of one pod into a file, without gaps or doubles
    log_folders         where logs are kept, and for how long
    names               names and labels
    options             the settings
    kai                 the same where KAI decides: queues that follow Bough's
"""
