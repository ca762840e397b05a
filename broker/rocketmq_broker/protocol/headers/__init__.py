"""The typed headers of requests and responses, with RocketMQ's names.

Requests and responses without a typed header have no extension fields.
"""
