"""Flushes messages to the disk, and sends responses once the messages are durable."""
