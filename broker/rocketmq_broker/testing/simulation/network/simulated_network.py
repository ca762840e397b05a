"""All links between the processes of a simulated world, and the faults on them.

TCP's promises hold. Within one direction of a connection bytes stay in order, and none is lost while the connection lives;
`lose_frames` is the exception: it stands for a proxy that forgets, or a peer that does not answer. What TCP does not promise is
left to chance and to faults: when data arrives, in what pieces, and whether the connection lives.

Not modelled: acknowledgements (a link that is blocked in one direction stops data in that direction only), a bound of waiting
connections, TLS, and the end of one direction alone.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Callable
from typing import TypeVar

from rocketmq_broker.remoting.network import Listener, Network
from rocketmq_broker.testing.memory_network import NewProtocol
from rocketmq_broker.testing.simulation.network.link import link_name
from rocketmq_broker.testing.simulation.network.links import LinkTable
from rocketmq_broker.testing.simulation.network.machines import Machines
from rocketmq_broker.testing.simulation.network.notes import Fired, NetworkNote, Observer, nothing
from rocketmq_broker.testing.simulation.network.open_connections import OpenConnections
from rocketmq_broker.testing.simulation.network.ports import NetworkEndpoint, NetworkHistory
from rocketmq_broker.testing.simulation.network.write_faults import SMALL_PIECE_BYTES, FrameWatch

P = TypeVar("P", bound=asyncio.Protocol)


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
        self._links = LinkTable(history, chance_of, latency_s)
        self._machines = Machines()
        self._connections = OpenConnections(self._links, self._machines)

    def at(self, endpoint: NetworkEndpoint) -> Network:
        """Returns the network by which this process binds and connects. Its machine has power from now on."""
        self._machines.started(endpoint)
        return _NetworkOfProcess(endpoint, self._machines, self._connections)

    def observe(self, observer: Observer) -> None:
        """Shows an observer each frame that is written, before anything can happen to it."""
        self._links.observers.append(observer)

    # Faults: `a` and `b` are names of processes, and the fault is on the way from `a` to `b`. `fired` is called once, when the
    # fault has its first effect; a fault that replaces another one of its kind takes over.

    def cut(self, a: str, b: str) -> int:
        """Resets all connections between both at once; what is under way is lost. Returns how many there were."""
        count = self._connections.cut(a, b)
        self._note(NetworkNote.CUT, a, b, f"{count} connections are reset")
        return count

    def cut_half_way(self, a: str, b: str, *, nth: int = 1, fired: Fired = nothing) -> None:
        """Lets the `nth` of the next frames arrive in part only; then both ends see a reset."""
        self._links.link(a, b).write_faults.cut(nth, fired)
        self._note(NetworkNote.CUT_HALF_WAY, a, b, f"the connection will break in the middle of frame {nth}")

    def block(self, a: str, b: str, *, fired: Fired = nothing) -> None:
        """Holds data, in this direction only. Attempts to connect, from either side, get no answer."""
        self._links.link(a, b).block(fired)
        self._note(NetworkNote.BLOCKED, a, b, "nothing arrives")

    def unblock(self, a: str, b: str) -> None:
        """Lets data through again. What was held arrives, in order."""
        freed = self._links.link(a, b)
        freed.unblock()
        self._note(NetworkNote.UNBLOCKED, a, b, "what was held arrives")
        self._connections.unblocked(freed)

    def lose_frames(self, a: str, b: str, count: int, *, fired: Fired = nothing) -> None:
        """Loses the next `count` whole frames of RocketMQ; their connections live."""
        self._links.link(a, b).write_faults.lose(count, fired)
        self._note(NetworkNote.LOSE_FRAMES, a, b, f"the next {count} frames will be lost")

    def lose_frames_by_chance(self, a: str, b: str, rate: float, *, fired: Fired = nothing) -> None:
        """Loses each frame with that probability until it is set to 0; the connections live. Raises ValueError."""
        self._links.link(a, b).write_faults.lose_by_chance(rate, fired)
        self._note(NetworkNote.LOSE_FRAMES, a, b, f"{rate:.0%} of the frames will be lost")

    def slow_down(self, a: str, b: str, min_s: float, max_s: float, *, fired: Fired = nothing) -> None:
        """Sets the limits of the latency of what is written from now on. Raises ValueError for a negative or reversed range."""
        self._links.link(a, b).slow_down(min_s, max_s, fired)
        self._note(NetworkNote.SLOW, a, b, f"each delivery takes from {min_s:g} s to {max_s:g} s")

    def speed_up(self, a: str, b: str) -> None:
        """Sets the usual limits of the latency again. What is under way is not overtaken."""
        self._links.link(a, b).speed_up()
        self._note(NetworkNote.FAST, a, b, "the usual latency")

    def in_pieces(self, a: str, b: str, is_on: bool, *, most_bytes: int = SMALL_PIECE_BYTES, fired: Fired = nothing) -> None:
        """Sets whether each write arrives in pieces of 1 to `most_bytes`, each in a callback.

        A write of more than 48 pieces ends in some 16 larger ones: every byte on its own would take hours.
        """
        self._links.link(a, b).write_faults.divide(most_bytes if is_on else 0, fired)
        kind, text = (NetworkNote.IN_PIECES, "small pieces") if is_on else (NetworkNote.IN_ONE_PIECE, "one piece")
        self._note(kind, a, b, f"each write arrives in {text}")

    def at_frame(self, name: str, nth: int, act: Callable[[], object], *, is_after: bool) -> None:
        """Calls `act` once, before or after the process sends the `nth` of its next frames, to whomever.

        `act` may kill the process. If it raises, the rest of the write is lost, and its writer gets the error.
        """
        self._links.watch(name, FrameWatch(nth, act, is_after))

    def died(self, endpoint: NetworkEndpoint, *, is_power: bool) -> None:
        """Takes away the ports and connections of a dead process.

        After a kill its kernel still sends what was written, and then resets each connection.

        A power failure is silent. What the other end has sent or sends without an acknowledgement is sent again, as Linux does:
        after 0.2 s, and each time after twice the wait, up to 120 s. A machine that has power again answers by a reset. After
        15 tries in vain, 924.6 s, the connection fails with ETIMEDOUT.
        """
        self._machines.died(endpoint, is_power=is_power)
        count = self._connections.died(endpoint, is_power=is_power)
        self._links.freeze(endpoint.name, False)
        text = f"{count} connections " + ("are silent" if is_power else "are reset")
        self._history.note(endpoint.name, NetworkNote.CONNECTIONS_OF_DEAD, text)

    def freeze(self, name: str) -> None:
        """Holds what is sent to a stopped process. Its kernel still accepts connections.

        A core that keeps the callbacks of the stopped process keeps the order of data and timers, too. Stop it as well.
        """
        self._links.freeze(name, True)
        self._history.note(name, NetworkNote.FROZEN, "what is sent to it waits")

    def thaw(self, name: str) -> None:
        """Delivers what waits for a process that goes on, in order."""
        self._links.freeze(name, False)
        self._connections.thawed(name)
        self._history.note(name, NetworkNote.THAWED, "what waited arrives")

    def _note(self, kind: NetworkNote, a: str, b: str, text: str) -> None:
        self._history.note(link_name(a, b), kind, text)


class _NetworkOfProcess:
    """The network as one process sees it."""

    def __init__(self, owner: NetworkEndpoint, machines: Machines, connections: OpenConnections) -> None:
        self._owner = owner
        self._machines = machines
        self._connections = connections

    async def bind(self, new_protocol: NewProtocol, host: str, port: int, backlog: int) -> Listener:
        """Binds a port of the process, any free one for 0. Raises OSError."""
        return self._machines.bind(self._owner, new_protocol, host, port)

    async def connect(self, new_protocol: Callable[[], P], host: str, port: int, tls: ssl.SSLContext | None) -> P:
        """Makes a connection. Raises OSError, and ValueError with TLS, which the simulated network does not have."""
        if tls is not None:
            raise ValueError("the simulated network has no TLS")
        return await self._connections.connect(self._owner, new_protocol, host, port)

    def served(self, protocol: asyncio.Protocol) -> asyncio.Protocol:
        """Returns the server's own protocol."""
        return protocol
