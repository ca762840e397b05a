"""Models the machines of a simulated network, with their addresses, their power state, and the ports of their processes."""

import errno
import socket
from collections.abc import Callable
from typing import Final

from rocketmq_broker.testing.memory_network import MemoryListener, NewProtocol
from rocketmq_broker.testing.simulation.network.ports import NetworkEndpoint

LOOPBACK: Final = "127.0.0.1"
LOOPBACK_HOSTS: Final = frozenset({LOOPBACK, "localhost"})
_ALL_ADDRESSES: Final = frozenset({"0.0.0.0", ""})
_FIRST_PORT: Final = 20_000
_PORTS_BETWEEN: Final = 10
_FIRST_CLIENT_PORT: Final = 50_000


class SimulatedPort(MemoryListener):
    """A port to which a simulated process is bound."""

    def __init__(
        self, owner: NetworkEndpoint, port: int, new_protocol: NewProtocol, is_local: bool, gone: Callable[[], object]
    ) -> None:
        """Creates a port. `is_local` restricts the port to connections from its own machine."""
        super().__init__(port, new_protocol, None, gone)
        self.owner = owner
        self.is_local = is_local


class Machines:
    """The machines of the network, keyed by address. Several processes may share a machine."""

    def __init__(self) -> None:
        self._addresses: dict[str, str] = {}
        """Maps the names of processes to the addresses of their machines."""
        self._newest: dict[str, str] = {}
        """Maps the address of a machine to its most recently started process."""
        self._dark: dict[str, None] = {}
        self._ports: dict[tuple[str, int], SimulatedPort] = {}
        self._last_port: dict[str, int] = {}
        self._last_client_port: dict[str, int] = {}

    def started(self, endpoint: NetworkEndpoint) -> None:
        """Registers a process, and marks its machine as powered on."""
        self._addresses[endpoint.name] = endpoint.address
        self._newest[endpoint.address] = endpoint.name
        self._dark.pop(endpoint.address, None)

    def died(self, endpoint: NetworkEndpoint, *, is_power: bool) -> None:
        """Closes the ports of a process that has ended.

        After a power failure its machine does not respond until a process starts there.
        """
        for port in [port for port in self._ports.values() if port.owner is endpoint]:
            port.stop()
        if is_power:
            self._dark[endpoint.address] = None

    def is_dark(self, address: str) -> bool:
        """Returns whether no running machine has the address."""
        return address in self._dark or address not in self._newest

    def address(self, owner: NetworkEndpoint, host: str) -> str:
        """Resolves a host, which is an address or the name of a process. Raises socket.gaierror."""
        if host in LOOPBACK_HOSTS:
            return owner.address
        if host in self._addresses:
            return self._addresses[host]
        if not host.replace(".", "").isdecimal():
            raise socket.gaierror(socket.EAI_NONAME, f"unknown process name: {host}")
        return host

    def process_at(self, address: str, port: int) -> str:
        """Returns the process that has bound the port, or the newest process of the machine."""
        bound = self._ports.get((address, port))
        return bound.owner.name if bound is not None else self._newest.get(address, address)

    def port_for(self, owner: NetworkEndpoint, address: str, port: int) -> SimulatedPort | None:
        """Returns the port if it accepts connections from `owner`, otherwise None."""
        bound = self._ports.get((address, port))
        if bound is None or not bound.is_listening or (bound.is_local and owner.address != address):
            return None
        return bound

    def bind(self, owner: NetworkEndpoint, new_protocol: NewProtocol, host: str, port: int) -> SimulatedPort:
        """Binds a port of the process. Port 0 selects a free port. Raises OSError."""
        address = owner.address
        if host not in _ALL_ADDRESSES and self.address(owner, host) != address:
            raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")
        key = address, port or self._free_port(address)
        if key in self._ports:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        bound = SimulatedPort(owner, key[1], new_protocol, host in LOOPBACK_HOSTS, lambda: self._ports.pop(key, None))
        self._ports[key] = bound
        return bound

    def new_client_port(self, address: str) -> int:
        """Returns the client port for a new connection from the machine at `address`."""
        port = self._last_client_port[address] = self._last_client_port.get(address, _FIRST_CLIENT_PORT) + 1
        return port

    def _free_port(self, address: str) -> int:
        port = self._last_port.get(address, _FIRST_PORT) + _PORTS_BETWEEN
        while (address, port) in self._ports:
            port += _PORTS_BETWEEN
        self._last_port[address] = port
        return port
