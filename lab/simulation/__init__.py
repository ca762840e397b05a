"""Simulates broker, services, customers and faults in one process, and checks the result.

A run is called a simulation in docstrings, and a world in identifiers and on screens. The seed of a run determines
all its events.
"""
