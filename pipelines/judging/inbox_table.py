"""Builds the table of the events of the credit service's inbox, for Spark."""

from collections.abc import Iterable
from typing import Final

import pyarrow

from pipelines.judging.history import EVENT_COLUMNS
from pipelines.judging.inbox_events import INBOX_COLUMNS, inbox_events
from pipelines.judging.route import Route

_ARROW: Final = {"string": pyarrow.string(), "bigint": pyarrow.int64(), "int": pyarrow.int32()}
_SCHEMA: Final = pyarrow.schema([(name, _ARROW[EVENT_COLUMNS[name]]) for name in INBOX_COLUMNS])


def inbox_event_table(batches: Iterable[pyarrow.RecordBatch], route: Route) -> pyarrow.Table:
    """Returns the events of batches of rows, with INBOX_COLUMNS. The bodies are read batch by batch, and not kept."""
    made = (pyarrow.RecordBatch.from_pylist([*inbox_events(batch.to_pylist(), route)], _SCHEMA) for batch in batches)
    return pyarrow.Table.from_batches(made, _SCHEMA)
