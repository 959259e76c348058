"""The backend `kubernetes`: every attempt is one pod, on the node that the plan chose.

A start enters by `KubernetesBackend.start`, which only notes it; workers create the pod, then its
Secrets. Two watches report all nodes and pods, from which `observe` derives the state of attempts.
Outside the server only the apiserver keeps state: a new server finds everything there.

    backend         the Backend protocol: start, stop, observe, forget, read_log
    attempt_state   one attempt: what is wanted, what its pod says, and the next step
    creation_rush   whether many pods are being created, so that reports can wait
    pod_writer      the requests that change something, one for each step
    group_services  the Services of groups: created, and deleted with the last attempt
    group_objects   the objects that group templates ask for: created, and deleted likewise
    node_tests      scheduled tests of nodes: a CronJob for each
    work_queue      which attempts have something to do, and the threads that do it
    pod_manifest    the Pod, the Secrets and the Service of an attempt
    data_folders    the folders of attempts on a claim, and the script that makes and deletes
                        them
    data_cleaner    the pod that deletes what attempts left that did not complete
    template_merge  merges pod templates
    pod_view        what a pod says about its attempt
    cluster_state   nodes as last reported, and what other pods hold on them
    node_view       a node as it is offered to the scheduler; what a pod holds
    pod_log_files   reads stored logs, from any process on this machine
    log_keeper      which logs are followed, and when they are complete
    log_follower    reads the log of one pod into a file, without gaps or duplicates
    log_folders     where logs are kept, and for how long
    names           names and labels
    options         the settings
    kai             the variant where KAI places the pods: its queues follow Bough's
"""
