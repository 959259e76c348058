"""What a task sees of the machine, and how much of it it can use.

A prepared command enters `sandbox.enter` in a forked process; what comes out is ready to execute.

    sandbox          which kind works here, and how to enter it
    root_filesystem  the files that a task sees, by our own code
    etc_files        what images lack in /etc
    bubblewrap       the same by bubblewrap
    init_process     the first process of a task's process namespace
    executing        the last steps before a program: signals, errors in words
    sandbox_probe    tries out a kind of sandbox
    limits           CPU, memory, process and device limits by control groups
    devices          which devices a task can use
    network          a network namespace for each group, with a way out
    network_probe    which network tasks get here, tried out
    netlink          interfaces and routes of the kernel
    cgroup_mounts    where control groups are mounted
    syscalls         system calls that Python does not have
"""
