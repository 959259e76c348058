"""The command line: arguments in, text or JSON out. It decides nothing.

    main                 the program: finds a command by its name, and the sections of its help
    command              the class of all commands and groups: errors become messages and exit codes
    suggestions          which command is meant by a word that is not one
    exit_codes           how commands end
    screen               under which name, in colour or not, in which time zone
    output               how an answer, a warning or an error is printed
    tables               tables, lists of fields, drawn trees
    times                times and ages
    options              options that several commands share
    multi_value_options  `--set a=1 b=2`
    server_commands      the client, and which pool is meant
    workflow_watching    a workflow from its submission to its end: reasons, output, exit code
    transfers            how far an upload or a download is
    name_arguments       workflows and pools as arguments, completed by the shell
    file_commands        files as arguments, and the tools that read them
    commands/            one module for each word after `bough`
    text/                answers as text, one module for each subject

A command reads its arguments, asks the client or a tool, and gives the answer with a function of
`text` to `output.echo`. Everything heavy is imported when a command runs and not before.
"""
