"""Findings counted while they are written: one pass over the data gives the totals and the Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from pipelines.judging.cut_off import CutOff
from pipelines.judging.findings import CONSISTENT, MEANINGS, Finding, FindingTotal

SAMPLES = 3

FINDING_SCHEMA = (
    "finding string, order_id string, customer string, order_cents bigint, credit_cents bigint, credit_count bigint, "
    "ordered_at timestamp, credited_at timestamp"
)


def write_findings(found: DataFrame, kinds: Sequence[Finding], directory: str) -> list[FindingTotal]:
    """Writes what did not match to `directory`/findings and returns the totals of these kinds, matched ones included."""
    path = f"{directory}/findings"
    observation = Observation("findings")
    (
        found.observe(observation, *_totals(kinds))
        .where(F.col("finding") != Finding.MATCHED)
        .select(
            "finding",
            "order_id",
            "customer",
            "order_cents",
            "credit_cents",
            "credit_count",
            F.timestamp_millis("ordered_at_ms").alias("ordered_at"),
            F.timestamp_millis("credited_at_ms").alias("credited_at"),
        )
        .write.mode("overwrite")
        .parquet(path)
    )
    written = found.sparkSession.read.schema(FINDING_SCHEMA).parquet(path)
    return [_total(kind, observation.get, written) for kind in kinds]


def write_summary(spark: SparkSession, totals: Sequence[FindingTotal], cut_off: CutOff, directory: str) -> None:
    """Writes one row for each kind of finding to `directory`/summary."""
    rows = [
        {
            "finding": total.finding.value,
            "meaning": MEANINGS[total.finding],
            "is_consistent": total.finding in CONSISTENT,
            "count": total.count,
            "order_cents": total.order_cents,
            "credit_cents": total.credit_cents,
            "as_of_ms": cut_off.as_of_ms,
            "grace_seconds": cut_off.grace_seconds,
        }
        for total in totals
    ]
    # An Arrow table needs no Python worker on its way, as tuples would.
    spark.createDataFrame(pyarrow.Table.from_pylist(rows)).coalesce(1).write.mode("overwrite").parquet(f"{directory}/summary")


def _totals(kinds: Sequence[Finding]) -> list[Column]:
    columns: list[Column] = []
    for kind in kinds:
        is_kind = F.col("finding") == kind
        columns += [
            F.count(F.when(is_kind, True)).alias(f"{kind}_count"),
            F.sum(F.when(is_kind, F.col("order_cents"))).alias(f"{kind}_order_cents"),
            F.sum(F.when(is_kind, F.col("credit_cents"))).alias(f"{kind}_credit_cents"),
            F.count(F.when(is_kind, F.col("order_cents"))).alias(f"{kind}_order_count"),
            F.sum(F.when(is_kind, F.col("credit_count"))).alias(f"{kind}_credit_count"),
        ]
    return columns


def _total(kind: Finding, observed: dict[str, Any], written: DataFrame) -> FindingTotal:
    count = observed.get(f"{kind}_count") or 0
    has_samples = count > 0 and kind is not Finding.MATCHED
    return FindingTotal(
        kind,
        count,
        observed.get(f"{kind}_order_cents") or 0,
        observed.get(f"{kind}_credit_cents") or 0,
        _samples(written, kind) if has_samples else (),
        observed.get(f"{kind}_order_count") or 0,
        observed.get(f"{kind}_credit_count") or 0,
    )


def _samples(written: DataFrame, kind: Finding) -> tuple[str, ...]:
    of_kind = written.where((F.col("finding") == kind) & F.col("order_id").isNotNull())
    return tuple(row.order_id for row in of_kind.select("order_id").orderBy("order_id").limit(SAMPLES).collect())
