"""Runs tests of `tests/component/pipelines`, which use SQLite, on Spark: in one process, and in Spark's tasks.

The tests start a JVM and Spark's Python workers. `make test` starts Spark only for
`tests/component/pipelines/test_embedded.py`, which compares the results of Spark and SQLite on all known books.
"""

from functools import partial

import pytest
from pyspark.sql import SparkSession

from pipelines.reconciliation import reconcile
from pipelines.sources.reading import Reading
from tests.component.pipelines.conftest import Judge, shop

__all__ = ["shop"]


@pytest.fixture(params=[True, False], ids=["in_one_process", "by_tasks"])
def judge(request: pytest.FixtureRequest, spark: SparkSession) -> Judge:
    """Returns a function that reconciles with Spark."""
    return partial(reconcile, Reading(spark, request.param))
