"""Benchmarks of the broker: beside Apache RocketMQ, and its hot path without sockets."""
