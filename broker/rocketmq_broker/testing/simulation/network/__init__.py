"""The network between the processes of a simulated world, with its faults."""

from rocketmq_broker.testing.simulation.network.simulated_network import SimulatedNetwork

__all__ = ["SimulatedNetwork"]
