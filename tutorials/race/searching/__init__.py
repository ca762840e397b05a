"""The race with random faults: each way in a simulated world whose seed determines the faults."""
