"""python -m pipelines.sources.spark_workers: Spark's Python daemon on this machine; it imports what tasks need before it forks.

Spark starts the module that `spark.python.daemon.module` names, and lets it fork a worker for each task. A worker finds the
sources and the libraries below them imported, and does not spend a second of processor time on that. A thread of
the daemon would be missing in the workers: none of these imports starts one, but for Arrow's allocator, which knows what to do.
"""

import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import pipelines.sources.databases.database_source  # noqa: F401
import rocketmq_commitlog.source  # noqa: F401

if __name__ == "__main__":
    manager()
