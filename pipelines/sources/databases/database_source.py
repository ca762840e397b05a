"""A Spark data source for tables: Arrow batches by ADBC, one task for each range of the primary key.

    spark.read.format("adbc").options(**address.to_options(), table="orders", key="id").schema("order_id string").load()

The schema selects the columns: other columns never leave the database. A value of another type than its column's is NULL, or text
that says that it cannot be read. The option `nullable` names the columns that may be NULL. (Spark could pass filters itself, but
starts one more Python process for each table to ask.) One task reads a table without an integer key (no option `key`).

Executors unpickle these classes by name, so this package must be importable there: installed beside pyspark, pyarrow and the
ADBC drivers, or sent along with --py-files.
"""

from __future__ import annotations

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
"""So many ranges are worth a count of the rows first."""


@dataclass
class TablePartition(InputPartition):
    """The part of a table that one task reads: a range of keys, everything (no range), or nothing."""

    keys: KeyRange | None = None
    is_empty: bool = False


class TableSource(DataSource):
    """The format `adbc`. Options: those of DatabaseAddress, and `table`; optional: `key`, `rowsPerRange`, `nullable`,
    and `sinceColumn` with `since`: only rows in which that column is greater."""

    @classmethod
    def name(cls) -> str:
        """Returns the name for `spark.read.format`."""
        return "adbc"

    def reader(self, schema: StructType) -> TableReader:
        """Returns a reader of the columns in the schema."""
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
    """Plans the ranges on the driver, and reads one of them in each task."""

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
        """`key` is the integer column that divides the table; `nullable` names the columns that may be NULL.

        `since` selects the rows; without it all rows are read.
        """
        self._since = since
        self._address = address
        self._table = table
        self._schema = schema
        self._key = key
        self._rows_per_range = rows_per_range
        self._nullable = nullable

    def partitions(self) -> Sequence[InputPartition]:
        """Returns the present ranges of keys; one for few rows, however far apart their keys are."""
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
    """Casts the batch to the types promised to Spark; drivers choose their own. "" in a nullable column becomes NULL again."""
    arrays = [with_valid_text(column).cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
    for index, field in enumerate(schema):
        if field.name in nullable and pyarrow.types.is_string(field.type):
            arrays[index] = pyarrow.compute.if_else(pyarrow.compute.equal(arrays[index], ""), None, arrays[index])
    return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)
