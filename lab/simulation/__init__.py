"""Simulates broker, services, customers and faults in one process, as determined by a seed, and judges the result."""
