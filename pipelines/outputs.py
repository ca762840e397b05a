"""Findings and summary as Parquet, replaced as a whole: a run that breaks off leaves the last good one."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow
import pyarrow.fs
import pyarrow.parquet

from pipelines.errors import UnwritableOutput
from pipelines.judging.classes import CONSISTENT, MEANINGS
from pipelines.judging.cut_off import CutOff
from pipelines.judging.totals import FindingTotal, Money

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


def write_findings(rows: Iterable[Mapping[str, Any]], output: str) -> None:
    """Writes what is told one by one to `output`/findings. Raises UnwritableOutput."""
    told = [
        {field.name: _value(row, field.name) for field in _FINDINGS}
        for row in rows
        if row["order_id"] is not None or row["stage"] is not None
    ]
    _replace(pyarrow.Table.from_pylist(told, _FINDINGS), output, "findings")


def write_summary(totals: Sequence[FindingTotal], cut_off: CutOff, output: str) -> None:
    """Writes one row for each class and currency to `output`/summary. Raises UnwritableOutput."""
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
    _replace(pyarrow.Table.from_pylist(rows, _SUMMARY), output, "summary")


def _value(row: Mapping[str, Any], name: str) -> Any:
    value = row[f"{name}_ms"] if name.endswith("_at") else row[name]
    return value if value is None or isinstance(value, str) else int(value)


def _replace(table: pyarrow.Table, output: str, name: str) -> None:
    try:
        if "://" in output:
            filesystem, path = pyarrow.fs.FileSystem.from_uri(f"{output}/{name}")
            filesystem.create_dir(path)
            pyarrow.parquet.write_table(table, f"{path}/part-0.parquet", filesystem=filesystem)
            return
        _replace_directory(table, Path(output) / name)
    except (OSError, pyarrow.ArrowException) as error:
        raise UnwritableOutput(f"output {output}: {getattr(error, 'strerror', None) or error}") from None


def _replace_directory(table: pyarrow.Table, directory: Path) -> None:
    fresh, old = directory.with_name(f".{directory.name}.new"), directory.with_name(f".{directory.name}.old")
    for leftover in (fresh, old):
        shutil.rmtree(leftover, ignore_errors=True)
    fresh.mkdir(parents=True)
    pyarrow.parquet.write_table(table, fresh / "part-0.parquet")
    if directory.exists():
        directory.rename(old)
    fresh.rename(directory)
    shutil.rmtree(old, ignore_errors=True)
