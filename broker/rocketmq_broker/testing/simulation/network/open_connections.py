"""Establishes the connections of a simulated network, and ends them when a process ends."""

import asyncio
import contextvars
from collections.abc import Callable
from typing import TypeVar

from rocketmq_broker.testing.memory_network import connection_reset
from rocketmq_broker.testing.simulation.network.attempt import ConnectionAttempt
from rocketmq_broker.testing.simulation.network.connection import Direction, Signal, SimulatedTransport, connect_ends
from rocketmq_broker.testing.simulation.network.link import Link
from rocketmq_broker.testing.simulation.network.links import LinkTable
from rocketmq_broker.testing.simulation.network.machines import LOOPBACK, LOOPBACK_HOSTS, Machines, SimulatedPort
from rocketmq_broker.testing.simulation.network.ports import NetworkEndpoint
from rocketmq_broker.testing.simulation.network.retransmission import Retransmission

P = TypeVar("P", bound=asyncio.Protocol)


class OpenConnections:
    """The ends of all open connections."""

    def __init__(self, links: LinkTable, machines: Machines) -> None:
        self._links = links
        self._machines = machines
        self._kernel = contextvars.Context()
        """The context of the machines' kernels, which outlive processes."""
        self._ends: dict[SimulatedTransport, None] = {}

    async def connect(self, owner: NetworkEndpoint, new_protocol: Callable[[], P], host: str, port: int) -> P:
        """Connects the process to a port. Raises OSError."""
        machines = self._machines
        address = machines.address(owner, host)
        other = machines.process_at(address, port)
        attempt = ConnectionAttempt(
            self._links.link(owner.name, other),
            self._links.link(other, owner.name),
            self._kernel,
            lambda: machines.port_for(owner, address, port),
            lambda: machines.is_dark(address),
        )
        accepting = await attempt.port()
        if not accepting.is_listening:
            raise connection_reset()
        end = self._connected(owner, accepting, is_loopback=host in LOOPBACK_HOSTS)
        protocol = new_protocol()
        end.set_protocol(protocol)
        end.outgoing.send(Signal.ACCEPTED)
        protocol.connection_made(end)
        return protocol

    def cut(self, a: str, b: str) -> int:
        """Resets all connections between the processes `a` and `b` immediately. Returns the number of connections."""
        client_ends: dict[SimulatedTransport, None] = {}
        for end in list(self._ends):
            if (end.process, end.peer.process) in ((a, b), (b, a)):
                client_ends[end.client_end] = None
                end.break_now(connection_reset())
        return len(client_ends)

    def unblocked(self, link: Link) -> None:
        """Delivers the held data of a link after the link's latency."""
        for end in self._ends:
            if end.incoming.link is link:
                end.incoming.go_on(link.latency_s())

    def thawed(self, name: str) -> None:
        """Immediately delivers the data that was held for a process."""
        for end in self._ends:
            if end.process == name:
                end.incoming.go_on(0.0)

    def died(self, endpoint: NetworkEndpoint, *, is_power: bool) -> int:
        """Ends the connections of a process that has ended. Returns the number of connections."""
        ends = [end for end in self._ends if end.owner is endpoint]
        for end in ends:
            if is_power:
                self._lose_power(end)
            else:
                end.reset_by_kernel()
        return len(ends)

    def _connected(self, owner: NetworkEndpoint, accepting: SimulatedPort, *, is_loopback: bool) -> SimulatedTransport:
        loop = asyncio.get_running_loop()
        client_address, server_address = (LOOPBACK, LOOPBACK) if is_loopback else (owner.address, accepting.owner.address)
        here = client_address, self._machines.new_client_port(owner.address)
        there = server_address, accepting.port
        client = SimulatedTransport(loop, owner, (here, there), self._forget)
        server = SimulatedTransport(loop, accepting.owner, (there, here), self._forget)
        server.listener = accepting
        connect_ends(client, server, self._direction(client, server), self._direction(server, client))
        self._ends[client] = self._ends[server] = None
        return client

    def _direction(self, sender: SimulatedTransport, receiver: SimulatedTransport) -> Direction:
        return Direction(self._links.link(sender.process, receiver.process), receiver)

    def _forget(self, end: SimulatedTransport) -> None:
        self._ends.pop(end, None)

    def _lose_power(self, end: SimulatedTransport) -> None:
        """Closes an end whose machine has lost power, without a reset to the other end."""
        there, back = end.incoming.link, end.outgoing.link
        address = end.owner.address
        end.vanish()
        end.outgoing.power_failed_here()
        if end.peer.is_lost:
            end.incoming.stop()
            return

        def is_answered() -> bool:
            return not (there.is_blocked or back.is_blocked or self._machines.is_dark(address))

        end.incoming.power_failed_there(Retransmission(end.peer, self._kernel, is_answered).begin)
