"""Benchmarks the broker against Apache RocketMQ, and its hot path without sockets."""
