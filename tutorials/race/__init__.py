"""Compares approaches to notify another service of an order. All approaches run under the same faults and the same final check.

`python -m tutorials.race` runs the comparison. The documentation calls an approach a "way", and the run of one approach under one
fault a "cell". Each run places orders one after another on a real broker (rocketmq_broker.testing) in virtual time. It stores
orders and credits in two SQLite files, and compares these files at the end. tutorials/ways-to-lose-money/README.md explains the
resulting table and how to add an approach.
"""
