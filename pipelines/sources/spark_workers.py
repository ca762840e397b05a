"""python -m pipelines.sources.spark_workers: Spark's local Python daemon, which imports the tasks' modules before it forks.

Spark starts the module named by `spark.python.daemon.module`, and lets it fork a worker for each task. A worker finds the sources
and their libraries imported, and saves a second of processor time. The daemon's threads would be missing in the workers: no
import starts one except Arrow's allocator, which handles forks.
"""

import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import pipelines.sources.databases.database_source  # noqa: F401
import rocketmq_commitlog.source  # noqa: F401

if __name__ == "__main__":
    manager()
