"""Converts records and damage to Arrow batches with the columns of a Spark schema."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import pyarrow
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from rocketmq_commitlog.commit_log import Damage, LogRecord
from rocketmq_commitlog.record_columns import COLUMNS, RecordColumns

BATCH_RECORDS: Final = 16_384


def record_batches(found: Iterable[LogRecord | Damage], wanted: StructType) -> Iterator[pyarrow.RecordBatch]:
    """Yields Arrow batches with one row for each record or damaged stretch. Builds only the columns in the schema."""
    schema = to_arrow_schema(wanted, timezone="UTC")
    makers = [COLUMNS[name] for name in wanted.fieldNames()]
    left = iter(found)
    while (rows := RecordColumns.of(islice(left, BATCH_RECORDS))).fields[0]:
        arrays = [pyarrow.array(make(rows), type=field.type) for make, field in zip(makers, schema, strict=True)]
        yield pyarrow.RecordBatch.from_arrays(arrays, schema=schema)
