"""What all tables share: the one collection of them, and the types of columns."""

from __future__ import annotations

import sqlalchemy as sa

METADATA = sa.MetaData()

#: Milliseconds since 1970, or bytes.
BIG = sa.BigInteger()
#: Counts up by itself; SQLite does that for its own INTEGER only.
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
JSON = sa.JSON(none_as_null=True)
