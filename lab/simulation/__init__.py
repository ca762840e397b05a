"""Simulates broker, services, customers and faults in one process, and judges the result.

A world is one such simulation. Its seed determines everything that happens in it.
"""
