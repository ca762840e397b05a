"""The race without a fault that is told: each way in a simulated world, whose seed chooses the faults."""
