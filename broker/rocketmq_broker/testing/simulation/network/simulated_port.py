"""Models the ports of simulated processes."""

from collections.abc import Callable

from rocketmq_broker.testing.memory_network import MemoryListener, NewProtocol
from rocketmq_broker.testing.simulation.network.ports import NetworkEndpoint


class SimulatedPort(MemoryListener):
    """A port to which a simulated process is bound."""

    def __init__(
        self, owner: NetworkEndpoint, port: int, new_protocol: NewProtocol, is_local: bool, gone: Callable[[], object]
    ) -> None:
        """Creates a port. `is_local` restricts the port to connections from its own machine."""
        super().__init__(port, new_protocol, None, gone)
        self.owner = owner
        self.is_local = is_local
