"""A Spark data source for RocketMQ's commit log. It provides a table of all records, or a stream of new records.

from rocketmq_commitlog import CommitLogSource
spark.dataSource.register(CommitLogSource)
spark.read.format("rocketmq_commitlog").option("store", "store").schema("topic string, keys string, body binary").load()
"""

from typing import TYPE_CHECKING, Any

from rocketmq_commitlog.errors import UnreadableStore

if TYPE_CHECKING:
    from rocketmq_commitlog.source import CommitLogSource

__all__ = ["CommitLogSource", "UnreadableStore"]


def __getattr__(name: str) -> Any:
    """Imports the data source on first use, because the modules that read a log need neither Spark nor Arrow."""
    if name == "CommitLogSource":
        from rocketmq_commitlog.source import CommitLogSource

        return CommitLogSource
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
