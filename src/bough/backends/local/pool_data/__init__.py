"""The data of pools on this machine: `bough://POOL/path`.

A pool has a folder with contents, each a file named by its checksum, and an index, a small SQLite
file that says which path has which content. The server and the supervisors of tasks use them at the
same time: each change of the index is one transaction, and a content is on disk before the index
names it. So a crash leaves at most contents that nothing names; `LocalPoolData.clean` drops these.

    pool_store      what the server does for requests: drafts, contents, lists, removal, cleaning
    pool_folder     a pool's folder: room, contents and drafts, for the server and supervisors alike
    folder_copying  what supervisors do for tasks: copy folders from and to the data of a pool
    index           the index: paths, contents, drafts, and how much space is used
    contents        the files that hold contents
    spare_file      a file that is given up on a full disk, so that data can still be deleted
"""
