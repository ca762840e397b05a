"""Benchmarks and simulated worlds. Nothing else in the project imports them."""
