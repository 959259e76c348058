"""YAML that other people write into model types; old spellings end here.

    composer    one YAML stream into plain values that know their lines, within limits
    documents   files, folders and standard input into documents
    quantity    `500m`, `16Gi` and `1e3` into integers
    fields      a typed cursor over a document that reports what is wrong and what is unknown
    metadata    what every Kubernetes object says of itself
    kueue, ...  one reader for each family of objects

Must not know what is decided about the objects, nor which rules they must obey.
"""
