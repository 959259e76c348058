"""Offline commands: files in, answers of `bough.api.file_answers` out.

The command line finds a tool by its name and only prints what the tool answers.

    quota, admit         `bough quota`
    gang                 `bough gang`
    place                `bough place`
    plan, why            `bough plan`, `bough why`
    run_spec             the workflow of one command, for `bough run`
    workflow_files       local files of a workflow that is submitted
    config_file          one object from YAML, for commands that change a configuration
    load_organisation    files into a quota tree
    load_gangs           files into gangs
    load_snapshot        files into a snapshot and its policy
    load_shares          queues of KAI, and what would be fair now
    remedy_sources       remedies as changes of the objects in the files
    kai_remedy_source    the part of them that changes queues of KAI
    kueue_remedy_source  the part of them that changes objects of Kueue
    file_problems        problems as plain data
"""
