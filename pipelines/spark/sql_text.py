"""Pieces of SQL for `selectExpr`, `where` and `expr`.

A text takes one call to the JVM, where a Column takes one for each function in it.
"""

from __future__ import annotations

from collections.abc import Iterable


def quoted(text: str) -> str:
    """Returns the text as a literal of Spark's SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def one_of(values: Iterable[str]) -> str:
    """Returns the texts as the list that follows IN."""
    return f"({', '.join(map(quoted, values))})"


def if_true(condition: str, value: str) -> str:
    """Returns the SQL of the value where the condition is true, and of NULL elsewhere."""
    return f"CASE WHEN {condition} THEN {value} END"
