"""Consume queues, which contain the commit log offsets of each queue's messages."""
