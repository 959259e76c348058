"""Documentation that cannot go stale: what a page shows of the program is what the program prints.

In a page (at the top of the repository, or anywhere below docs/) five things are kept true:

- a block fenced as `console`: every line that starts with `$ ` is run, what follows is its output;
- a block fenced as `pycon`: a Python session, run from a clean start;
- a block below a line `<!-- excerpt FILE KEY... -->`: these top-level keys of that YAML file;
- what stands between `<!-- commands -->` and `<!-- end of commands -->`: the help of every command;
- what stands between `<!-- states -->` and `<!-- end of states -->`: the states of workflows.

`python -m tests.docs` shows where pages and program differ, `--write` (`make docs`) puts the pages
right; tests/unit/test_docs.py fails where they differ, or where a link leads nowhere.
"""
