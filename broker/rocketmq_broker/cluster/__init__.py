"""Runs a cluster on one machine: a name server and several brokers, each in its own process, under one supervisor.

`supervisor` is the entry point. A single broker imports only `folder`.
"""
