"""Compares both databases with PySpark: each order must have exactly one credit, with the points of its total."""

import os

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from sqlmodel import create_engine, text

from rocketmq_broker.stop_signals import until_interrupted


def rows(spark: SparkSession, url: str, query: str, schema: str) -> DataFrame:
    """Returns the result of a query. For large tables on PostgreSQL use `spark.read.jdbc` instead."""
    with create_engine(url).connect() as connection:
        return spark.createDataFrame([tuple(row) for row in connection.execute(text(query))], schema)


def findings(spark: SparkSession, orders_url: str, credits_url: str) -> DataFrame:
    """Returns a row for each order with a missing or wrong credit, and for each credit without an order.

    Reads the credits first, because each order is stored before its credit.
    """
    credit = rows(spark, credits_url, "SELECT order_id, points FROM credit", "order_id string, points long")
    order = rows(spark, orders_url, 'SELECT order_id, total_cents FROM "order"', "order_id string, total_cents long")
    credited = credit.groupBy("order_id").agg(F.count("*").alias("credits"), F.sum("points").alias("points"))
    finding = (
        F.when(F.isnull("total_cents"), "credit without order")
        .when(F.isnull("credits"), "missing credit")
        .when(F.col("credits") > 1, "double credit")
        .when(F.expr("points <> total_cents DIV 100"), "wrong points")
    )
    return order.join(credited, "order_id", "full_outer").withColumn("finding", finding).where("finding IS NOT NULL")


if __name__ == "__main__":
    with until_interrupted():
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # no other machine can reach Spark
        findings(SparkSession.builder.getOrCreate(), os.environ["DATABASE_URL"], os.environ["CREDITS_URL"]).show(truncate=False)
