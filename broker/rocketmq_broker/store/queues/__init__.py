"""Consume queues: where each queue's messages lie in the commit log."""
