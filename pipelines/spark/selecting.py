"""Asks Spark by one text of SQL: a frame of Column objects takes several calls to the JVM for each function in it."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame


def select(rows: DataFrame, columns: Iterable[str], *, where: str | None = None, group_by: Iterable[str] = ()) -> DataFrame:
    """Returns these columns of the rows, each as SQL: `SELECT columns FROM rows WHERE where GROUP BY group_by`."""
    grouping = ", ".join(group_by)
    # Braces are those of the text: Spark puts the frame into the one pair that names it.
    chosen = _with_braces(", ".join(columns))
    condition = f" WHERE {_with_braces(where)}" if where else ""
    text = f"SELECT {chosen} FROM {{rows}}{condition}{f' GROUP BY {grouping}' if grouping else ''}"
    return rows.sparkSession.sql(text, rows=rows)


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


def _with_braces(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
