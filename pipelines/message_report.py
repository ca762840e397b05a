"""Reports the content of a commit log, for `python -m pipelines messages`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from rich.table import Table
from rich.text import Text

from pipelines.errors import UnwritableOutput
from pipelines.judging.cut_off import CutOff
from pipelines.outputs import local_folder
from pipelines.run_folders import replaced_together
from pipelines.sources.logs.message_logs import read_records
from pipelines.sources.reading import Reading
from pipelines.transactions import transactions_of
from rocketmq_broker.message.text.printable import printable
from rocketmq_commitlog.record_columns import RecordKind

_NOT_THERE: Final = (RecordKind.DAMAGE, RecordKind.GAP)


@dataclass(frozen=True, slots=True)
class TopicCount:
    """The number of records of one kind in one topic. Damaged parts have no topic."""

    topic: str | None
    kind: RecordKind
    records: int
    bytes: int


@dataclass(frozen=True, slots=True)
class LoggedTransactions:
    """The number of a topic's transactions with each outcome, according to the commit log."""

    transactions: int
    delivered: int
    doubled: int
    pending: int
    """The number of undecided transactions that are older than the grace period. They count as inconsistent."""
    in_flight: int
    """The number of undecided transactions that are younger than the grace period."""


@dataclass(frozen=True, slots=True)
class MessageReport:
    """The counts of a commit log."""

    topics: list[TopicCount]
    transactions: LoggedTransactions

    @property
    def is_consistent(self) -> bool:
        """True if nothing is damaged, delivered twice, or pending for too long."""
        is_damaged = any(count.kind in _NOT_THERE for count in self.topics)
        return not (is_damaged or self.transactions.doubled or self.transactions.pending)


def report_messages(reading: Reading, store: Path, topic: str, cut_off: CutOff, output: str) -> MessageReport:
    """Counts the records of the log. Writes the transactions of `topic` as Parquet to `output`/transactions."""
    records = read_records(reading, store)
    topics = [
        TopicCount(row["topic"], RecordKind(row["kind"]), row["records"], row["bytes"])
        for row in count_records(records).collect()
    ]
    found = transactions_of(records, topic)
    with _replaced(output) as path:
        found.write.mode("overwrite").parquet(path)
        counts = _counts(reading.spark.read.schema(found.schema).parquet(path), cut_off)
    return MessageReport(topics, counts)


def count_records(records: DataFrame) -> DataFrame:
    """Returns the number of records and of bytes for each topic and kind. Columns: topic, kind, records, bytes."""
    return (
        records.groupBy("topic", "kind")
        .agg(F.count(F.lit(1)).alias("records"), F.sum("size").alias("bytes"))
        .orderBy("topic", "kind")
    )


@contextmanager
def _replaced(output: str) -> Iterator[str]:
    """Yields the path to which the transactions are written.

    For a local `output` this is a new folder, which replaces the last run's transactions after the block. Otherwise it is
    `output`/transactions. Raises UnwritableOutput.
    """
    folder = local_folder(output)
    if folder is None:
        yield f"{output}/transactions"
        return
    try:
        with replaced_together(folder, "messages", ["transactions"]) as fresh:
            yield str((fresh / "transactions").absolute())
    except OSError as error:
        raise UnwritableOutput(f"output {output}: {error.strerror or error}") from None


def _counts(transactions: DataFrame, cut_off: CutOff) -> LoggedTransactions:
    is_old = F.col("stored_at_ms") <= cut_off.judged_until_ms
    counts = transactions.agg(
        F.count(F.lit(1)),
        F.count(F.when(F.col("delivered") > 0, True)),
        F.count(F.when(F.col("delivered") > 1, True)),
        F.count(F.when(F.col("is_pending") & is_old, True)),
        F.count(F.when(F.col("is_pending") & ~is_old, True)),
    ).collect()[0]
    return LoggedTransactions(*counts)


def topics_table(report: MessageReport, store: Path) -> Table:
    """Returns a table with the number of records of each topic and kind."""
    table = Table(title=Text(printable(f"Commit log of {store}")))
    table.add_column("topic")
    table.add_column("kind")
    table.add_column("records", justify="right")
    table.add_column("bytes", justify="right")
    for count in report.topics:
        style = "bold red" if count.kind in _NOT_THERE else ""
        table.add_row(
            Text(printable(count.topic or "-")), count.kind.value, f"{count.records:,}", f"{count.bytes:,}", style=style
        )
    return table


def transactions_table(report: MessageReport, topic: str, cut_off: CutOff) -> Table:
    """Returns a table with the number of transactions of each outcome."""
    counts = report.transactions
    table = Table(title=Text(printable(f"Transactions of topic {topic}")))
    table.add_column("outcome")
    table.add_column("transactions", justify="right")
    table.add_row("all", f"{counts.transactions:,}")
    table.add_row("delivered", f"{counts.delivered:,}")
    table.add_row("delivered more than once", f"{counts.doubled:,}", style="bold red" if counts.doubled else "")
    closed = counts.transactions - counts.delivered - counts.pending - counts.in_flight
    table.add_row("rolled back or discarded", f"{closed:,}")
    table.add_row("undecided, still in flight", f"{counts.in_flight:,}")
    late = f"undecided for more than {cut_off.grace_seconds} s"
    table.add_row(late, f"{counts.pending:,}", style="bold red" if counts.pending else "")
    return table
