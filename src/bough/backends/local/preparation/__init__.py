"""From a task's spec to a command that can be run.

`prepare_task.prepare` takes a launch and gives a command; it writes into the attempt's folder.

    prepare_task    puts everything below together
    layout          where a task's files are, inside and outside of its sandbox
    environment     variables and arguments
    credentials     credentials as files and variables
    transfers       inputs, outputs and checkpoints as mounts and copies
    accounts        the user account that a task runs as
    container       the command that runs an image
"""
