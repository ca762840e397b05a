"""The databases of the simulated world and their faults."""
