"""YAML into typed values that know their lines.

Text goes in by `documents`; readers get a `Fields` cursor for each mapping.

documents   files, folders and standard input into documents
composer    one YAML stream into values that know their lines, within limits
from_json   values of JSON as values of a stream
scalars     what a plain scalar means
fields      a typed cursor over a mapping, which collects problems
quantity    `500m`, `16Gi` and `1e3` into integers
times       dates and durations into integers
"""
