"""Turns a source into a DataFrame. Spark's tasks read large sources, and this process reads small ones."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.functions import arrow_udtf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, DataType, IntegerType, LongType, StringType, StructField, StructType
from pyspark.sql.udtf import UserDefinedTableFunction


@dataclass(frozen=True, slots=True)
class Reading:
    """Reads sources for one Spark session.

    Small sources are read in this process, into one partition, because starting Spark's Python workers takes longer than reading.
    """

    spark: SparkSession
    is_small: bool = False

    def frame(self, source: type[DataSource], options: Mapping[str, str], columns: Mapping[str, str]) -> DataFrame:
        """Returns a DataFrame with these columns of a source, by name and Spark type.

        The call plans the partitions. Large sources are read later, when the DataFrame is used. Raises the source's errors.
        """
        schema = schema_of(columns)
        if self.is_small:
            return self.spark.createDataFrame(read_here(source, options, schema)).coalesce(1)
        reader = source(dict(options)).reader(schema)
        partitions = reader.partitions()
        # One number for each partition. `spark.read` would start two more Python processes for each source, sequentially, to
        # plan partitions that this process has already planned.
        numbers = self.spark.range(0, len(partitions), 1, max(1, len(partitions)))
        return _read_by_tasks(numbers, reader, partitions, schema)

    def held(self, frame: DataFrame) -> DataFrame:
        """Returns a frame with the same rows, which is computed only once.

        For small sources it stores the rows without their plan, because planning each use takes longer than the computation.
        """
        return frame.localCheckpoint(eager=False) if self.is_small else frame.persist()

    def rows(self, frame: DataFrame) -> list[dict[str, Any]]:
        """Returns all rows. They must fit in memory."""
        rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
        return rows

    def together(self, frame: DataFrame, *keys: str) -> DataFrame:
        """Returns a frame in which rows with equal keys are in one partition. Without keys no rows are moved.

        For small sources the frame has only one partition, so that nothing is shuffled.
        """
        if self.is_small:
            return frame.coalesce(1)
        return frame.repartition(*keys) if keys else frame


def _read_by_tasks(
    numbers: DataFrame, reader: DataSourceReader, partitions: Sequence[InputPartition], schema: StructType
) -> DataFrame:
    """Returns the rows of these partitions. Each task reads the partition with its number."""

    class PartitionsRead:
        def eval(self, numbers: pyarrow.RecordBatch) -> Iterator[pyarrow.RecordBatch]:
            for number in numbers.column(0).to_pylist():
                yield from reader.read(partitions[number])

    function = arrow_udtf(PartitionsRead, returnType=schema)
    assert isinstance(function, UserDefinedTableFunction)
    return function(numbers.asTable())


def read_here(source: type[DataSource], options: Mapping[str, str], schema: StructType) -> pyarrow.Table:
    """Reads all rows of a source in this process, without Spark."""
    reader = source(dict(options)).reader(schema)
    batches = [batch for partition in reader.partitions() for batch in reader.read(partition)]
    return pyarrow.Table.from_batches(batches, to_arrow_schema(schema, timezone="UTC"))


def schema_of(columns: Mapping[str, str]) -> StructType:
    """Returns the schema of these columns, by name and Spark type, without a call to the JVM."""
    return StructType([StructField(name, _TYPES[kind]) for name, kind in columns.items()])


_TYPES: Final[Mapping[str, DataType]] = {
    "string": StringType(),
    "bigint": LongType(),
    "int": IntegerType(),
    "binary": BinaryType(),
}
