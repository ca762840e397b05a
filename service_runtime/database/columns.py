"""Column types that work on both SQLite and PostgreSQL."""

from typing import Final

from sqlalchemy import BigInteger, Integer

ROW_ID: Final = BigInteger().with_variant(Integer, "sqlite")
"""A row id that the database generates. SQLite generates ids only for a key that is declared INTEGER."""
