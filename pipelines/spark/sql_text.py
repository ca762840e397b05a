"""Helps to build SQL for `selectExpr`, `where` and `expr`.

An SQL text takes one call to the JVM; a Column takes one for each of its functions.
"""

from __future__ import annotations

from collections.abc import Iterable


def quoted(text: str) -> str:
    """Returns the text as a literal of Spark's SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def one_of(values: Iterable[str]) -> str:
    """Returns the texts as the list for IN."""
    return f"({', '.join(map(quoted, values))})"


def if_true(condition: str, value: str) -> str:
    """Returns SQL that is the value if the condition is true, otherwise NULL."""
    return f"CASE WHEN {condition} THEN {value} END"
