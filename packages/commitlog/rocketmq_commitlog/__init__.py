"""RocketMQ's commit log as a Spark data source: a table of its records, and a stream of new ones.

from rocketmq_commitlog import CommitLogSource
spark.dataSource.register(CommitLogSource)
spark.read.format("rocketmq_commitlog").option("store", "store").schema("topic string, keys string, body binary").load()
"""

from rocketmq_commitlog.errors import UnreadableStore
from rocketmq_commitlog.source import CommitLogSource

__all__ = ["CommitLogSource", "UnreadableStore"]
