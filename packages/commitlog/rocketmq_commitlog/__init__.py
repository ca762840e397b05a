"""A Spark data source for RocketMQ's commit log. It provides a table of all records, or a stream of new records.

from rocketmq_commitlog import CommitLogSource
spark.dataSource.register(CommitLogSource)
spark.read.format("rocketmq_commitlog").option("store", "store").schema("topic string, keys string, body binary").load()
"""

from rocketmq_commitlog.errors import UnreadableStore
from rocketmq_commitlog.source import CommitLogSource

__all__ = ["CommitLogSource", "UnreadableStore"]
