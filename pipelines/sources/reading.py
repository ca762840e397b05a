"""How a source becomes a DataFrame: read by Spark's tasks, or here and now where that is quicker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType


@dataclass(frozen=True, slots=True)
class Reading:
    """Reads sources for one session.

    Small books are read in this process, into one partition: Spark would start Python processes to read them, which takes
    longer than reading.
    """

    spark: SparkSession
    is_small: bool = False

    def frame(self, source: type[DataSource], options: Mapping[str, str], columns: Mapping[str, str]) -> DataFrame:
        """These columns of a source, by their names and Spark's types.

        Which partitions there are is found out now, and large books are read when the DataFrame is used. Raises what the source
        raises.
        """
        schema = _parsed(", ".join(f"{name} {kind}" for name, kind in columns.items()))
        if self.is_small:
            return self.spark.createDataFrame(read_here(source, options, schema)).coalesce(1)
        reader = source(dict(options)).reader(schema)
        partitions = reader.partitions()
        # One number for each partition. `spark.read` would start two more Python processes for each source, one after the other,
        # to learn what this one knows.
        numbers = self.spark.range(0, len(partitions), 1, max(1, len(partitions)))
        return _mapped(numbers, _reading(reader, partitions), schema)

    def held(self, frame: DataFrame) -> DataFrame:
        """The frame, worked out once however often it is used.

        Of small books its rows are kept and how they came about is forgotten: planning all of that again for each use would take
        far longer than the work.
        """
        return frame.localCheckpoint(eager=False) if self.is_small else frame.persist()

    def together(self, frame: DataFrame, *keys: str) -> DataFrame:
        """The frame in one partition if the books are small: nothing has to be shuffled afterwards.

        If they are large, rows with equal keys are in one partition, or nothing is moved if no key is named.
        """
        if self.is_small:
            return frame.coalesce(1)
        return frame.repartition(*keys) if keys else frame


_MapInArrow = Callable[[Iterable[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]


def _mapped(frame: DataFrame, function: _MapInArrow, schema: StructType) -> DataFrame:
    """`frame.mapInArrow(function, schema)`, which asks for pandas and needs none."""
    column = UserDefinedFunction(function, schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)(*frame.columns)
    return DataFrame(frame._jdf.mapInArrow(column._jc, False, None), frame.sparkSession)


def _reading(reader: DataSourceReader, partitions: Sequence[InputPartition]) -> _MapInArrow:
    """What a task does with the numbers of its partitions: it reads them."""

    def read(numbers: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from reader.read(partitions[number])

    return read


def read_here(source: type[DataSource], options: Mapping[str, str], schema: StructType) -> pyarrow.Table:
    """All rows of a source with these columns, read by this process and without Spark."""
    reader = source(dict(options)).reader(schema)
    batches = [batch for partition in reader.partitions() for batch in reader.read(partition)]
    return pyarrow.Table.from_batches(batches, to_arrow_schema(schema, timezone="UTC"))


def _parsed(columns: str) -> StructType:
    schema = StructType.fromDDL(columns)
    assert isinstance(schema, StructType)
    return schema
