"""The data of pools on this machine: `bough://POOL/path`.

A pool has a folder with contents, each a file named by its checksum, and an index, a small SQLite
file that says which path has which content. The server and the supervisors of tasks use them side
by side: what changes the index is one transaction, and a content is on the disk before the index
names it. So a crash leaves at most contents that nothing names; `LocalPoolData.clean` drops these.

    pool_store   what the server does for requests: drafts, contents, lists, removal, cleaning
    trees        what supervisors do for tasks: a folder from the data of a pool, and into it
    index        the index: paths, contents, drafts, and how much room is left
    contents     the files that hold contents
"""
