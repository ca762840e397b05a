"""The links between the processes of a simulated world, and what goes wrong on them."""

from rocketmq_broker.testing.simulation.network.simulated_network import SimulatedNetwork

__all__ = ["SimulatedNetwork"]
