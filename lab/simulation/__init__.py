"""Simulates broker, services, customers and faults in one process, and checks the result.

Each simulated run is called a simulation here, and a world in names and on screens. Its seed determines everything that happens
in it.
"""
