"""Helps to build SQL for `selectExpr`, `where` and `expr`.

An SQL string requires one call to the JVM. A Column requires one call for each of its functions.
"""

from collections.abc import Iterable


def quoted(text: str) -> str:
    """Returns the string as a literal of Spark's SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def one_of(values: Iterable[str]) -> str:
    """Returns the strings as a list for the SQL operator IN."""
    return f"({', '.join(map(quoted, values))})"


def if_true(condition: str, value: str) -> str:
    """Returns SQL that is the value if the condition is true, otherwise NULL."""
    return f"CASE WHEN {condition} THEN {value} END"
