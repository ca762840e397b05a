"""Brokers of one machine as a cluster: a name server and several brokers, each in its own process, under one supervisor.

`supervisor` is the door. A single broker looks at the folder only (`folder`), and is spared the rest.
"""
