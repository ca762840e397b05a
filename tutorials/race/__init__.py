"""The race compares ways to inform another database of an order, under the same faults and with the same judge.

`python -m tutorials.race` runs it. A cell is one way under one fault: orders are placed one after another on a real broker
(rocketmq_broker.testing) in virtual time, orders and credits are stored in two SQLite files, and the judge compares the files.
tutorials/ways-to-lose-money/README.md explains the table and how to add a way.
"""
