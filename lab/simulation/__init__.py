"""The simulated world: broker, services, customers and faults in one process, determined by a seed; and its judges."""
