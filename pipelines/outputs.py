"""Writes findings and summary as Parquet. Both are replaced together, so an interrupted run keeps the files of the previous one.

Each is a directory with one file. The metadata of its schema contains the run's `as_of_ms`. An object store cannot replace two
files atomically. There the summary is written after the findings.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow
import pyarrow.parquet
from pyarrow.fs import FileSystem, LocalFileSystem

from pipelines.errors import UnwritableOutput
from pipelines.judging.classes import CONSISTENT, MEANINGS
from pipelines.judging.cut_off import CutOff
from pipelines.judging.totals import FindingTotal, Money
from pipelines.run_folders import replaced_together

_FILE: Final = "part-0.parquet"
_TIME: Final = pyarrow.timestamp("ms", tz="UTC")
_FINDINGS: Final = pyarrow.schema(
    [
        ("finding", pyarrow.string()),
        ("cause", pyarrow.string()),
        ("stage", pyarrow.string()),
        ("order_id", pyarrow.string()),
        ("customer", pyarrow.string()),
        ("currency", pyarrow.string()),
        ("order_count", pyarrow.int64()),
        ("order_cents", pyarrow.int64()),
        ("credit_count", pyarrow.int64()),
        ("credit_cents", pyarrow.int64()),
        ("at_stake_cents", pyarrow.int64()),
        ("transaction_id", pyarrow.string()),
        ("ordered_at", _TIME),
        ("half_at", _TIME),
        ("delivered_at", _TIME),
        ("discarded_at", _TIME),
        ("dead_at", _TIME),
        ("received_at", _TIME),
        ("last_error", pyarrow.string()),
        ("credited_at", _TIME),
        ("points", pyarrow.int64()),
        ("balance", pyarrow.int64()),
    ]
)
_SUMMARY: Final = pyarrow.schema(
    [
        ("finding", pyarrow.string()),
        ("meaning", pyarrow.string()),
        ("is_consistent", pyarrow.bool_()),
        ("currency", pyarrow.string()),
        ("count", pyarrow.int64()),
        ("order_cents", pyarrow.decimal128(38, 0)),
        ("credit_cents", pyarrow.decimal128(38, 0)),
        ("at_stake_cents", pyarrow.decimal128(38, 0)),
        ("as_of_ms", pyarrow.int64()),
        ("grace_seconds", pyarrow.int64()),
    ]
)


def write_outputs(rows: Iterable[Mapping[str, Any]], totals: Sequence[FindingTotal], cut_off: CutOff, output: str) -> None:
    """Writes the findings to `output`/findings, and a row for each class and currency to `output`/summary.

    `rows` come from `totals.summed`, and `totals` are their sums. Raises UnwritableOutput.
    """
    tables = {"findings": _findings(rows), "summary": _summary(totals, cut_off)}
    run = {"as_of_ms": str(cut_off.as_of_ms)}
    try:
        _replace({name: table.replace_schema_metadata(run) for name, table in tables.items()}, output)
    except (OSError, pyarrow.ArrowException) as error:
        raise UnwritableOutput(f"output {output}: {getattr(error, 'strerror', None) or error}") from None


def _findings(rows: Iterable[Mapping[str, Any]]) -> pyarrow.Table:
    findings = [
        {field.name: _value(row, field.name) for field in _FINDINGS}
        for row in rows
        if row["order_id"] is not None or row["stage"] is not None
    ]
    return pyarrow.Table.from_pylist(findings, _FINDINGS)


def _summary(totals: Sequence[FindingTotal], cut_off: CutOff) -> pyarrow.Table:
    rows = [
        {
            "finding": total.finding.value,
            "meaning": MEANINGS[total.finding],
            "is_consistent": total.finding in CONSISTENT,
            "currency": money.currency or None,
            "count": money.count,
            "order_cents": money.order_cents,
            "credit_cents": money.credit_cents,
            "at_stake_cents": money.at_stake_cents,
            "as_of_ms": cut_off.as_of_ms,
            "grace_seconds": cut_off.grace_seconds,
        }
        for total in totals
        for money in total.money or (Money(""),)
    ]
    return pyarrow.Table.from_pylist(rows, _SUMMARY)


def _value(row: Mapping[str, Any], name: str) -> Any:
    value = row[f"{name}_ms"] if name.endswith("_at") else row[name]
    return value if value is None or isinstance(value, str) else int(value)


def _replace(tables: Mapping[str, pyarrow.Table], output: str) -> None:
    folder = local_folder(output)
    if folder is not None:
        with replaced_together(folder, "reconciliation", list(tables)) as fresh:
            for name, table in tables.items():
                (fresh / name).mkdir()
                pyarrow.parquet.write_table(table, fresh / name / _FILE)
        return
    filesystem, place = FileSystem.from_uri(output)
    for name, table in tables.items():
        filesystem.create_dir(f"{place}/{name}")
        pyarrow.parquet.write_table(table, f"{place}/{name}/{_FILE}", filesystem=filesystem)


def local_folder(output: str) -> Path | None:
    """Returns the local folder of an output, or None if it is not local."""
    if "://" not in output:
        return Path(output)
    filesystem, folder = FileSystem.from_uri(output)
    return Path(folder) if isinstance(filesystem, LocalFileSystem) else None
