"""Simulates broker, services, customers and faults in one process, and checks the result.

Each run is called a simulation here, and a world in names and on screens. The seed of a run determines all its events.
"""
