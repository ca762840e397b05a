"""The judgement of a few thousand orders without Spark: plain rows become events, and SQLite runs the rules.

The rules, the facts and the columns of a history are those of the reconciliation. Only what makes events of rows and records is
written twice; `tests/component/pipelines/judging/test_without_spark.py` holds both to the same broken books.
"""
