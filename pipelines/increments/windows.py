"""Stores settled histories in windows of one day, by the time of the order.

A history is settled if it is healthy, older than the grace period, and has no message on its way or in the inbox. Usually a
window is written once. If a late row changes a settled history, the history is judged again, and its window is rewritten.
"""

from functools import reduce
from typing import Final

import pyarrow.parquet
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.increments.state import IncrementState, Manifest
from pipelines.judging.cut_off import CutOff
from pipelines.judging.history import EVENT_COLUMNS
from pipelines.judging.judge import findings_of, judged, without_markers
from pipelines.judging.rules import KnownRepairs
from pipelines.judging.totals import SUMMED, summed
from pipelines.sources.reading import Reading

SCHEMA: Final = ", ".join(f"{name} {kind}" for name, kind in EVENT_COLUMNS.items())
"""The schema of stored histories. A stored history is one row with the columns of an event."""

_BEGAN: Final = "COALESCE(ordered_at_ms, half_at_ms, delivered_at_ms, credited_at_ms, decided_at_ms, 0)"


def is_settled() -> str:
    """Returns the SQL condition under which a judged history is settled."""
    healthy = ", ".join(f"'{finding}'" for finding in SUMMED)
    is_consumed = "unconsumed + unconsumed_retries + unconsumed_cancellations = 0"
    return f"finding IN ({healthy}) AND is_old AND {is_consumed} AND NOT has_inbox_row"


def read_windows(reading: Reading, state: IncrementState, manifest: Manifest | None) -> DataFrame:
    """Returns all settled histories of earlier runs, with their windows."""
    parts = [] if manifest is None else [(window, state.window(run, window)) for window, run in manifest.windows.items()]
    frames = [reading.spark.read.schema(SCHEMA).parquet(str(path)).withColumn("window", F.lit(window)) for window, path in parts]
    if not frames:
        return reading.spark.createDataFrame([], f"{SCHEMA}, window string")
    return reading.together(reduce(DataFrame.unionByName, frames))


def with_window(histories: DataFrame, window_ms: int) -> DataFrame:
    """Adds the window to each history."""
    return histories.withColumn("window", F.expr(f"CAST({_BEGAN} div {window_ms} AS string)"))


def write_windows(
    state: IncrementState,
    run: str,
    settled: DataFrame,
    cut_off: CutOff,
    log_begins_ms: int | None,
    repairs: KnownRepairs | None,
    period_ms: int,
) -> dict[str, str]:
    """Writes complete windows and the sums over each window. Returns the run that wrote each window, keyed by window."""
    folder = state.folder / run
    settled.write.mode("overwrite").partitionBy("window").parquet(str(folder / "settled"))
    (folder / "sums").mkdir()
    written = {}
    for path in sorted((folder / "settled").glob("window=*")):
        window = path.name.partition("=")[2]
        kept = settled.sparkSession.read.schema(SCHEMA).parquet(str(path))
        sums = summed(findings_of(judged(without_markers(kept), cut_off, log_begins_ms, repairs)), period_ms).toArrow()
        pyarrow.parquet.write_table(sums, state.sums(run, window))
        written[window] = run
    return written
