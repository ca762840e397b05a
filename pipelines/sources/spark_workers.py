"""Spark's local Python daemon, which imports the modules of the tasks before it forks workers.

Spark starts the module in `spark.python.daemon.module`, which forks a worker for each task. The sources and their libraries are
already imported in each worker. This saves a second of CPU time per worker. Threads do not survive a fork; the only import that
starts one is Arrow's allocator, which supports forks.
"""

import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import pipelines.sources.databases.database_source  # noqa: F401
import rocketmq_commitlog.source  # noqa: F401

if __name__ == "__main__":
    manager()
