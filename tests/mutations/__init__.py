"""Break the program in places that matter, one at a time: the tests must notice each.

    make mutations               all of them, some minutes
    make mutations ONLY=cordon   those whose name has the word

A mutation is a text that stands exactly once below src/bough, wherever its module is moved, and
what it becomes. It is made in a copy of the tree; the tests that are named there must fail.

- `mutation`: the type of one.
- `engine`, `server`, `tasks`, `kubernetes`: the mutations, by the part that they break.
- `run`: makes them and runs the tests.
"""
