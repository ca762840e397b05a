"""Column types that both kinds of database understand."""

from typing import Final

from sqlalchemy import BigInteger, Integer

ROW_ID: Final = BigInteger().with_variant(Integer, "sqlite")
"""A row's number, given by the database. SQLite numbers rows by itself only where the key is declared INTEGER."""
