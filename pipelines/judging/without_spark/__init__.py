"""Judges a few thousand orders without Spark. Plain rows become events, and SQLite runs the rules.

The rules, the facts and the columns of a history are the same as in the reconciliation. Only the conversion of rows and records
into events is implemented twice. `tests/component/pipelines/judging/test_without_spark.py` checks both implementations with the
same broken databases.
"""
