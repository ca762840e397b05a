"""The network between the processes of a simulated world, with its faults.

TCP's guarantees hold: in one direction of a connection bytes stay in order, and are not lost while the connection
is open. `lose_frames` is the exception. It simulates a faulty proxy, or a peer that does not respond. Randomness
and faults decide when data arrives, in what pieces, and whether the connection stays open.

Acknowledgements are not modelled: a link blocked in one direction stops data in that direction only. The listen
backlog, TLS and half-closed connections are not modelled either.
"""

import asyncio
import random
import ssl
from collections.abc import Callable
from typing import TypeVar

from rocketmq_broker.remoting.network import Listener, Network
from rocketmq_broker.testing.memory_network import NewProtocol
from rocketmq_broker.testing.simulation.history import History
from rocketmq_broker.testing.simulation.network.link import link_name
from rocketmq_broker.testing.simulation.network.links import LinkTable
from rocketmq_broker.testing.simulation.network.machines import Machines
from rocketmq_broker.testing.simulation.network.notes import Fired, NetworkNote, Observer, nothing
from rocketmq_broker.testing.simulation.network.open_connections import OpenConnections
from rocketmq_broker.testing.simulation.network.ports import NetworkEndpoint
from rocketmq_broker.testing.simulation.network.write_faults import FrameWatch

P = TypeVar("P", bound=asyncio.Protocol)


class SimulatedNetwork:
    """The network of a simulated world. Faults refer to processes by name, and remain when a process restarts."""

    def __init__(
        self,
        history: History,
        chance_of: Callable[[str], random.Random],
        *,
        latency_s: tuple[float, float] = (0.0002, 0.003),
    ) -> None:
        """Creates a network. `chance_of` returns a link's random stream. `latency_s` is the normal range of the latency."""
        self._history = history
        self._links = LinkTable(history, chance_of, latency_s)
        self._machines = Machines()
        self._connections = OpenConnections(self._links, self._machines)

    def at(self, endpoint: NetworkEndpoint) -> Network:
        """Returns the network that a process uses to bind ports and to connect. Marks the process's machine as powered on."""
        self._machines.started(endpoint)
        return _NetworkOfProcess(endpoint, self._machines, self._connections)

    def observe(self, observer: Observer) -> None:
        """Adds an observer of all writes, before any faults."""
        self._links.observers.append(observer)

    # Faults: `a` and `b` are names of processes, and the fault is on the link from `a` to `b`. `fired` is called once, at the
    # fault's first effect. A fault replaces an earlier one of the same kind.

    def cut(self, a: str, b: str) -> int:
        """Resets all connections between `a` and `b` immediately. Data in transit is lost. Returns the number of connections."""
        count = self._connections.cut(a, b)
        self._note(NetworkNote.CUT, a, b, f"{count} connections are reset")
        return count

    def cut_half_way(self, a: str, b: str, *, nth: int = 1, fired: Fired = nothing) -> None:
        """Delivers only a part of the `nth` frame from now, then resets the connection."""
        self._links.link(a, b).write_faults.cut(nth, fired)
        self._note(NetworkNote.CUT_HALF_WAY, a, b, f"the connection will break in the middle of frame {nth}")

    def block(self, a: str, b: str, *, fired: Fired = nothing) -> None:
        """Holds data in this direction only. Connection attempts from either side receive no response."""
        self._links.link(a, b).block(fired)
        self._note(NetworkNote.BLOCKED, a, b, "data is held")

    def unblock(self, a: str, b: str) -> None:
        """Unblocks the direction. Held data arrives in order."""
        freed = self._links.link(a, b)
        freed.unblock()
        self._note(NetworkNote.UNBLOCKED, a, b, "held data is delivered")
        self._connections.unblocked(freed)

    def lose_frames(self, a: str, b: str, count: int, *, fired: Fired = nothing) -> None:
        """Drops the next `count` complete RocketMQ frames. The connections stay open."""
        self._links.link(a, b).write_faults.lose(count, fired)
        self._note(NetworkNote.LOSE_FRAMES, a, b, f"the next {count} frames will be lost")

    def slow_down(self, a: str, b: str, min_s: float, max_s: float, *, fired: Fired = nothing) -> None:
        """Sets the range of the latency for later writes. Raises ValueError for a negative or reversed range."""
        self._links.link(a, b).slow_down(min_s, max_s, fired)
        self._note(NetworkNote.SLOW, a, b, f"each delivery takes from {min_s:g} s to {max_s:g} s")

    def speed_up(self, a: str, b: str) -> None:
        """Restores the normal latency. Later data does not overtake data in transit."""
        self._links.link(a, b).speed_up()
        self._note(NetworkNote.FAST, a, b, "the usual latency")

    def in_pieces(self, a: str, b: str, is_on: bool, *, fired: Fired = nothing) -> None:
        """Sets whether each write arrives in pieces of 1 to 7 bytes, each in its own callback.

        After 48 pieces the rest of a write arrives in about 16 larger pieces, because many small pieces would take hours.
        """
        self._links.link(a, b).write_faults.divide(is_on, fired)
        kind, text = (NetworkNote.IN_PIECES, "small pieces") if is_on else (NetworkNote.IN_ONE_PIECE, "one piece")
        self._note(kind, a, b, f"each write arrives in {text}")

    def at_frame(self, name: str, nth: int, act: Callable[[], object], *, is_after: bool) -> None:
        """Calls `act` once, before or after the process sends its `nth` frame from now to any receiver.

        `act` may kill the process. If it raises an error, the rest of the write is lost, and the writer receives the error.
        """
        self._links.watch(name, FrameWatch(nth, act, is_after))

    def died(self, endpoint: NetworkEndpoint, *, is_power: bool) -> None:
        """Removes the ports and connections of a process that has ended.

        After a kill, the kernel still sends written data and then resets each connection.

        After a power failure, the process's machine does not respond. The other end retransmits unacknowledged data like
        Linux: after 0.2 s, then with doubled delays of up to 120 s. Once the machine runs again, it responds with a reset.
        After 15 retries, 924.6 s, the connection fails with ETIMEDOUT.
        """
        self._machines.died(endpoint, is_power=is_power)
        count = self._connections.died(endpoint, is_power=is_power)
        self._links.freeze(endpoint.name, False)
        text = f"{count} connections " + ("are silent" if is_power else "are reset")
        self._history.note(endpoint.name, NetworkNote.CONNECTIONS_OF_DEAD, text)

    def freeze(self, name: str) -> None:
        """Holds data sent to a stopped process. Its kernel still accepts connections.

        Stop the process as well (`SimulatedProcess.freeze`), which keeps the order of data and timers.
        """
        self._links.freeze(name, True)
        self._history.note(name, NetworkNote.FROZEN, "data sent to it is held")

    def thaw(self, name: str) -> None:
        """Stops holding data sent to a process that was stopped. The held data arrives in order."""
        self._links.freeze(name, False)
        self._connections.thawed(name)
        self._history.note(name, NetworkNote.THAWED, "held data is delivered")

    def _note(self, kind: NetworkNote, a: str, b: str, text: str) -> None:
        self._history.note(link_name(a, b), kind, text)


class _NetworkOfProcess:
    """The network of one process."""

    def __init__(self, owner: NetworkEndpoint, machines: Machines, connections: OpenConnections) -> None:
        self._owner = owner
        self._machines = machines
        self._connections = connections

    async def bind(
        self, new_protocol: NewProtocol, host: str, port: int, backlog: int, *, is_exclusive: bool = False
    ) -> Listener:
        """Binds a port of the process. Port 0 selects a free port. Raises OSError."""
        return self._machines.bind(self._owner, new_protocol, host, port)

    async def connect(self, new_protocol: Callable[[], P], host: str, port: int, tls: ssl.SSLContext | None) -> P:
        """Connects to a port. Raises OSError, and ValueError for TLS, which is not simulated."""
        if tls is not None:
            raise ValueError("the simulated network does not support TLS")
        return await self._connections.connect(self._owner, new_protocol, host, port)

    def served(self, protocol: asyncio.Protocol) -> asyncio.Protocol:
        """Returns the protocol unchanged."""
        return protocol
