"""Consume queues: the commit log offsets of each queue's messages."""
