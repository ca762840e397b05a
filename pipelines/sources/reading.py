"""How a source becomes a DataFrame: read by Spark's tasks, or here and now where that is quicker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class Reading:
    """Reads sources for one session.

    Small books are read in this process, into one partition: Spark would start a Python process for each source to plan it, and
    others to read it, which takes longer than reading.
    """

    spark: SparkSession
    is_small: bool = False

    def frame(self, source: type[DataSource], options: Mapping[str, str], columns: Mapping[str, str]) -> DataFrame:
        """These columns of a source, by their names and Spark's types.

        Large books are read when the DataFrame is used.
        """
        schema = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        if not self.is_small:
            self.spark.dataSource.register(source)
            return self.spark.read.format(source.name()).options(**options).schema(schema).load()
        return self.spark.createDataFrame(read_here(source, options, _parsed(schema))).coalesce(1)

    def together(self, frame: DataFrame) -> DataFrame:
        """The frame in one partition if the books are small: nothing has to be shuffled afterwards."""
        return frame.coalesce(1) if self.is_small else frame


def read_here(source: type[DataSource], options: Mapping[str, str], schema: StructType) -> pyarrow.Table:
    """All rows of a source with these columns, read by this process and without Spark."""
    reader = source(dict(options)).reader(schema)
    batches = [batch for partition in reader.partitions() for batch in reader.read(partition)]
    return pyarrow.Table.from_batches(batches, to_arrow_schema(schema, timezone="UTC"))


def _parsed(columns: str) -> StructType:
    schema = StructType.fromDDL(columns)
    assert isinstance(schema, StructType)
    return schema
