"""A Spark data source that reads tables as Arrow batches with ADBC. One task reads each range of the primary key.

    spark.read.format("adbc").options(**address.to_options(), table="orders", key="id").schema("order_id string").load()

The schema selects the columns; others are not read. A value that does not have its column's type is NULL, or the text
"(unreadable)". The option `nullable` lists the columns that may be NULL. Filters are not pushed down, because Spark would start
another Python process for each table. A table without an integer key (no option `key`) is read by one task.

Executors unpickle these classes by name, so the package must be importable there: installed with pyspark, pyarrow and the ADBC
drivers, or sent with --py-files.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow
import pyarrow.compute
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pipelines.sources.databases.adbc import count_rows, key_bounds, read_columns
from pipelines.sources.databases.column_values import with_valid_text
from pipelines.sources.databases.database_address import DatabaseAddress
from pipelines.sources.databases.key_ranges import ROWS_PER_RANGE, KeyRange, Since, split_keys

MANY_RANGES: Final = 10
"""If there are more ranges than this, the rows are counted first."""


@dataclass
class TablePartition(InputPartition):
    """The part of a table that one task reads: a range of keys, all rows (None), or nothing."""

    keys: KeyRange | None = None
    is_empty: bool = False


class TableSource(DataSource):
    """The Spark data source `adbc`.

    The options of DatabaseAddress and `table` are required. The options `key`, `rowsPerRange`, `nullable`, and `sinceColumn` with
    `since` are optional. The last two select the rows in which the column `sinceColumn` is greater than `since`.
    """

    @classmethod
    def name(cls) -> str:
        """Returns the format name for `spark.read.format`."""
        return "adbc"

    def reader(self, schema: StructType) -> "TableReader":
        """Returns a reader for the columns of the schema."""
        return TableReader(
            DatabaseAddress.from_options(self.options),
            self.options["table"],
            schema,
            self.options.get("key"),
            int(self.options.get("rowsPerRange", ROWS_PER_RANGE)),
            tuple(filter(None, self.options.get("nullable", "").split(","))),
            Since(self.options["sinceColumn"], int(self.options["since"])) if "since" in self.options else None,
        )


class TableReader(DataSourceReader):
    """Plans the ranges on the driver, and reads one range in each task."""

    def __init__(
        self,
        address: DatabaseAddress,
        table: str,
        schema: StructType,
        key: str | None,
        rows_per_range: int,
        nullable: Sequence[str] = (),
        since: Since | None = None,
    ) -> None:
        """Creates a reader. `key` is the integer column that partitions the table.

        `nullable` are the columns that may be NULL. `since` selects new rows; None selects all.
        """
        self._since = since
        self._address = address
        self._table = table
        self._schema = schema
        self._key = key
        self._rows_per_range = rows_per_range
        self._nullable = nullable

    def partitions(self) -> Sequence[InputPartition]:
        """Returns the ranges of keys. A small table is one range, even if the keys are far apart."""
        if self._key is None:
            return [TablePartition()]
        lowest, highest = key_bounds(self._address, self._table, self._key, self._since)
        ranges = split_keys(lowest, highest, self._rows_per_range)
        if len(ranges) > MANY_RANGES and count_rows(self._address, self._table, self._rows_per_range + 1) <= self._rows_per_range:
            return [TablePartition(KeyRange(ranges[0].first, ranges[-1].last))]
        return [TablePartition(keys) for keys in ranges] or [TablePartition(is_empty=True)]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """Yields the rows of one range. Raises UnreadableDatabase."""
        if not isinstance(partition, TablePartition) or partition.is_empty:
            return
        wanted = to_arrow_schema(self._schema, timezone="UTC")
        columns = {field.name: field.dataType.simpleString() for field in self._schema}
        batches = read_columns(
            self._address,
            self._table,
            columns,
            key=self._key,
            keys=partition.keys,
            nullable=self._nullable,
            since=self._since,
        )
        for batch in batches:
            yield _as(wanted, batch, self._nullable)


def _as(schema: pyarrow.Schema, batch: pyarrow.RecordBatch, nullable: Sequence[str]) -> pyarrow.RecordBatch:
    """Casts the batch from the driver's types to the schema's. "" in a nullable column becomes NULL."""
    arrays = [with_valid_text(column).cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
    for index, field in enumerate(schema):
        if field.name in nullable and pyarrow.types.is_string(field.type):
            arrays[index] = pyarrow.compute.if_else(pyarrow.compute.equal(arrays[index], ""), None, arrays[index])
    return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)
