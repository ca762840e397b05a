"""The race: ways to inform another database of an order, under the same faults, before the same judge.

`python -m tutorials.race` runs it. A cell is one way under one fault: orders are placed one after another on a real broker
(rocketmq_broker.testing) whose time passes at once, orders and credits lie in two SQLite files, and the judge compares the files.
tutorials/ways-to-lose-money/README.md explains the table, and how to add a way.
"""
