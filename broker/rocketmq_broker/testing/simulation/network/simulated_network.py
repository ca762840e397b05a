"""All links between the processes of a simulated world, and the faults on them.

TCP's promises hold. Within one direction of a connection bytes stay in order, and none is lost while the connection lives;
`lose_frames` is the exception: it stands for a proxy that forgets, or a peer that does not answer. What TCP does not promise is
left to chance and to faults: when data arrives, in what pieces, and whether the connection lives.

Not modelled: acknowledgements (a link that is blocked in one direction stops data in that direction only), a bound of waiting
connections, TLS, and the end of one direction alone.
"""

from __future__ import annotations

import asyncio
import contextvars
import errno
import os
import random
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from rocketmq_broker.remoting.network import Listener, Network
from rocketmq_broker.testing.memory_network import NewProtocol, connection_reset
from rocketmq_broker.testing.simulation.network.attempt import ConnectionAttempt
from rocketmq_broker.testing.simulation.network.connection import Signal, SimulatedTransport, connect_ends
from rocketmq_broker.testing.simulation.network.link import Link, NetworkNote, Observer, link_name
from rocketmq_broker.testing.simulation.network.ports import NetworkEndpoint, NetworkHistory
from rocketmq_broker.testing.simulation.network.retransmission import Retransmission
from rocketmq_broker.testing.simulation.network.simulated_port import SimulatedPort

P = TypeVar("P", bound=asyncio.Protocol)

_LOOPBACK: Final = "127.0.0.1"
_LOOPBACK_HOSTS: Final = frozenset({_LOOPBACK, "localhost"})
_ALL_ADDRESSES: Final = frozenset({"0.0.0.0", ""})
_FIRST_PORT: Final = 20_000
_PORTS_BETWEEN: Final = 10
_FIRST_CLIENT_PORT: Final = 50_000


class SimulatedNetwork:
    """The network of a simulated world. Faults name processes, and stay for those that are started again under the name."""

    def __init__(
        self,
        history: NetworkHistory,
        chance_of: Callable[[str], random.Random],
        *,
        latency_s: tuple[float, float] = (0.0002, 0.003),
    ) -> None:
        """`chance_of` returns the source of chance of a link by its name; `latency_s` has the limits of one delivery's time."""
        self._history = history
        self._chance_of = chance_of
        self._latency_s = latency_s
        self._kernel = contextvars.Context()
        """What machines do themselves runs in it: it goes on when a process dies."""
        self._links: dict[tuple[str, str], Link] = {}
        self._machines: dict[str, str] = {}
        """The process last started at each address."""
        self._dark: dict[str, None] = {}
        self._frozen: dict[str, None] = {}
        self._ports: dict[tuple[str, int], SimulatedPort] = {}
        self._ends: dict[SimulatedTransport, None] = {}
        self.observers: list[Observer] = []
        """All who see each write before it is sent."""
        self._next_port: dict[str, int] = {}
        self._next_client_port: dict[str, int] = {}

    def at(self, endpoint: NetworkEndpoint) -> Network:
        """Returns the network by which this process binds and connects. Its machine has power from now on."""
        self._machines[endpoint.address] = endpoint.name
        self._dark.pop(endpoint.address, None)
        return _NetworkOfProcess(self, endpoint)

    # faults: `a` and `b` are names of processes, and the fault is on the way from `a` to `b`

    def cut(self, a: str, b: str) -> int:
        """Resets all connections between both at once; what is under way is lost. Returns how many there were."""
        client_ends: dict[SimulatedTransport, None] = {}
        for end in list(self._ends):
            if (end.process, end.peer.process) in ((a, b), (b, a)):
                client_ends[end.client_end] = None
                end.break_now(connection_reset())
        self._note(NetworkNote.CUT, a, b, f"{len(client_ends)} connections are reset")
        return len(client_ends)

    def cut_half_way(self, a: str, b: str) -> None:
        """Lets the next write from `a` to `b` arrive in part only; then both ends see a reset."""
        self._link(a, b).cut_next_write()
        self._note(NetworkNote.CUT_HALF_WAY, a, b, "the next write will be cut")

    def block(self, a: str, b: str) -> None:
        """Holds data, in this direction only. Attempts to connect, from either side, get no answer."""
        self._link(a, b).hold(is_blocked=True)
        self._note(NetworkNote.BLOCKED, a, b, "nothing arrives")

    def unblock(self, a: str, b: str) -> None:
        """Lets data through again. What was held arrives, in order."""
        freed = self._link(a, b)
        freed.hold(is_blocked=False)
        self._note(NetworkNote.UNBLOCKED, a, b, "what was held arrives")
        self._go_on(lambda link: link is freed)

    def lose_frames(self, a: str, b: str, count: int) -> None:
        """Loses the next `count` whole frames of RocketMQ; their connections live."""
        self._link(a, b).lose_frames(count)
        self._note(NetworkNote.LOSE_FRAMES, a, b, f"the next {count} frames will be lost")

    def slow_down(self, a: str, b: str, min_s: float, max_s: float) -> None:
        """Sets the limits of the latency of what is written from now on. Raises ValueError for a negative or reversed range."""
        self._link(a, b).take(min_s, max_s)
        self._note(NetworkNote.SLOW, a, b, f"each delivery takes from {min_s:g} s to {max_s:g} s")

    def speed_up(self, a: str, b: str) -> None:
        """Sets the usual limits of the latency again. What is under way is not overtaken."""
        self._link(a, b).take(*self._latency_s)
        self._note(NetworkNote.FAST, a, b, "the usual latency")

    def in_pieces(self, a: str, b: str, is_on: bool) -> None:
        """Sets whether each write arrives in pieces of 1 to 7 bytes, each in a callback; a long write's rest in larger ones."""
        self._link(a, b).in_pieces(is_on)
        kind, text = (NetworkNote.IN_PIECES, "small pieces") if is_on else (NetworkNote.IN_ONE_PIECE, "one piece")
        self._note(kind, a, b, f"each write arrives in {text}")

    def died(self, endpoint: NetworkEndpoint, *, is_power: bool) -> None:
        """Takes away the ports and connections of a dead process.

        After a kill its kernel still sends what was written, and then resets each connection.

        A power failure is silent. What the other end has sent or sends without an acknowledgement is sent again, as Linux does:
        after 0.2 s, and each time after twice the wait, up to 120 s. A machine that has power again answers by a reset. After
        15 tries in vain, 924.6 s, the connection fails with ETIMEDOUT.
        """
        for port in [port for port in self._ports.values() if port.owner is endpoint]:
            port.stop()
        if is_power:
            self._dark[endpoint.address] = None
        count = 0
        for end in list(self._ends):
            if end.owner is endpoint:
                count += 1
                if is_power:
                    self._lose_power(end)
                else:
                    end.reset_by_kernel()
        self._hold(endpoint.name, is_frozen=False)
        text = f"{count} connections " + ("are silent" if is_power else "are reset")
        self._history.note(endpoint.name, NetworkNote.CONNECTIONS_OF_DEAD, text)

    def freeze(self, name: str) -> None:
        """Holds what is sent to a stopped process. Its kernel still accepts connections."""
        self._hold(name, is_frozen=True)
        self._history.note(name, NetworkNote.FROZEN, "what is sent to it waits")

    def thaw(self, name: str) -> None:
        """Delivers what waits for a process that goes on, in order."""
        self._hold(name, is_frozen=False)
        self._history.note(name, NetworkNote.THAWED, "what waited arrives")

    # for the processes' networks

    def bind(self, owner: NetworkEndpoint, new_protocol: NewProtocol, host: str, port: int) -> SimulatedPort:
        """Binds a port of the process, any free one for 0. Raises OSError."""
        address = owner.address
        if host not in _ALL_ADDRESSES and self._address(owner, host) != address:
            raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
        while port == 0 or (address, port) in self._ports:
            if port != 0 and port != self._next_port.get(address):
                raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
            port = self._next_port[address] = self._next_port.get(address, _FIRST_PORT) + _PORTS_BETWEEN
        key = address, port
        bound = SimulatedPort(owner, port, new_protocol, host in _LOOPBACK_HOSTS, lambda: self._ports.pop(key, None))
        self._ports[key] = bound
        return bound

    async def connect(self, owner: NetworkEndpoint, new_protocol: Callable[[], P], host: str, port: int) -> P:
        """Connects the process to a port. Raises OSError."""
        address = self._address(owner, host)
        is_local = address == owner.address

        def port_there() -> SimulatedPort | None:
            bound = self._ports.get((address, port))
            return bound if bound is not None and bound.is_listening and (is_local or not bound.is_local) else None

        bound = port_there()
        name = bound.owner.name if bound is not None else self._machines.get(address, address)
        there, back = self._link(owner.name, name), self._link(name, owner.name)
        attempt = ConnectionAttempt(there, back, self._kernel, port_there, lambda: self._is_dark(address))
        bound = await attempt.port()
        if not bound.is_listening:
            raise connection_reset()
        names = (_LOOPBACK, _LOOPBACK) if host in _LOOPBACK_HOSTS else (owner.address, address)
        end = self._connected(owner, bound, names, there, back)
        protocol = new_protocol()
        end.set_protocol(protocol)
        end.outgoing.send(Signal.ACCEPTED)
        protocol.connection_made(end)
        return protocol

    def _connected(
        self, owner: NetworkEndpoint, bound: SimulatedPort, addresses: tuple[str, str], there: Link, back: Link
    ) -> SimulatedTransport:
        client_port = self._next_client_port.get(owner.address, _FIRST_CLIENT_PORT) + 1
        self._next_client_port[owner.address] = client_port
        loop = asyncio.get_running_loop()
        here, other = (addresses[0], client_port), (addresses[1], bound.port)
        client = SimulatedTransport(loop, owner, (here, other), self._forget)
        server = SimulatedTransport(loop, bound.owner, (other, here), self._forget)
        server.listener = bound
        connect_ends(client, server, there, back)
        self._ends[client] = self._ends[server] = None
        return client

    def _forget(self, end: SimulatedTransport) -> None:
        self._ends.pop(end, None)

    def _address(self, owner: NetworkEndpoint, host: str) -> str:
        if host in _LOOPBACK_HOSTS or host == owner.name:
            return owner.address
        for address, name in self._machines.items():
            if name == host:
                return address
        if not host.replace(".", "").isdecimal():
            raise socket.gaierror(socket.EAI_NONAME, f"no process has the name {host}")
        return host

    def _is_dark(self, address: str) -> bool:
        return address in self._dark or address not in self._machines

    # links

    def _link(self, sender: str, receiver: str) -> Link:
        link = self._links.get((sender, receiver))
        if link is None:
            chance = self._chance_of(link_name(sender, receiver))
            link = self._links[sender, receiver] = Link(sender, receiver, chance, self._history, self._latency_s)
            link.observers = self.observers
            link.hold(is_frozen=receiver in self._frozen)
        return link

    def _links_to(self, receiver: str) -> Iterator[Link]:
        return (link for link in self._links.values() if link.receiver == receiver)

    def _hold(self, name: str, *, is_frozen: bool) -> None:
        if is_frozen:
            self._frozen[name] = None
        else:
            self._frozen.pop(name, None)
        for link in self._links_to(name):
            link.hold(is_frozen=is_frozen)
        if not is_frozen:
            self._go_on(lambda link: link.receiver == name)

    def _go_on(self, is_free: Callable[[Link], bool]) -> None:
        for end in self._ends:
            if is_free(end.incoming.link):
                end.incoming.go_on()

    def _lose_power(self, end: SimulatedTransport) -> None:
        """Lets an end whose machine is dark fall silent."""
        there, back = end.incoming.link, end.outgoing.link
        address = end.owner.address
        end.vanish()
        end.outgoing.power_failed_here()
        if end.peer.is_lost:
            end.incoming.stop()
            return

        def is_answered() -> bool:
            return not (there.is_blocked or back.is_blocked or self._is_dark(address))

        end.incoming.power_failed_there(Retransmission(end.peer, self._kernel, is_answered).begin)

    def _note(self, kind: NetworkNote, a: str, b: str, text: str) -> None:
        self._history.note(link_name(a, b), kind, text)


class _NetworkOfProcess:
    """The network as one process sees it."""

    def __init__(self, network: SimulatedNetwork, owner: NetworkEndpoint) -> None:
        self._network = network
        self._owner = owner

    async def bind(self, new_protocol: NewProtocol, host: str, port: int, backlog: int) -> Listener:
        """Binds a port of the process, any free one for 0. Raises OSError."""
        return self._network.bind(self._owner, new_protocol, host, port)

    async def connect(self, new_protocol: Callable[[], P], host: str, port: int, tls: ssl.SSLContext | None) -> P:
        """Makes a connection. Raises OSError, and ValueError with TLS, which the simulated network does not have."""
        if tls is not None:
            raise ValueError("the simulated network has no TLS")
        return await self._network.connect(self._owner, new_protocol, host, port)
