"""The simulated world: broker, services, customers and faults in one process, from a seed; and who judges it."""
