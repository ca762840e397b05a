"""Judges a few thousand orders without Spark. Plain rows become events, and SQLite runs the rules.

Events, rules, facts and the columns of a history are the same SQL as in the reconciliation. SQLite lacks a few functions, and it
cannot read JSON bodies as Spark does, so this is written in Python. `tests/component/pipelines/judging/test_without_spark.py`
checks it with the same broken databases.
"""
