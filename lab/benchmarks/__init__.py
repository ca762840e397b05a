"""Benchmarks that compare the broker with Apache RocketMQ, and that measure its hot path without sockets."""
