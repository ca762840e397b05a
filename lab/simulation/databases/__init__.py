"""The databases of a simulation and their faults."""
