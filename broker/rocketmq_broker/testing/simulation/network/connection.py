"""Simulates a connection between two processes, with its two ends and the data in transit in each direction.

Each direction has a queue of the data in transit, and one timer for the first item. Data therefore arrives in order, regardless
of the latencies, and a held link stops the whole queue.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from enum import StrEnum

from rocketmq_broker.testing.memory_network import MemoryListener, MemoryTransport, connection_reset
from rocketmq_broker.testing.simulation.network.link import Link
from rocketmq_broker.testing.simulation.network.ports import NetworkEndpoint

SocketName = tuple[str, int]
"""An address and a port."""


class Signal(StrEnum):
    """A signal that travels in order with the data of a connection."""

    ACCEPTED = "accepted"
    """The connection is established."""
    END = "end"
    """The other end has written its last byte."""


Parcel = bytes | Signal | OSError
"""An item in transit: data, a signal, or the error that breaks the connection."""


class Direction:
    """One direction of a connection. Bytes stay in order, and are lost only through a fault or the connection's end."""

    def __init__(self, link: Link, receiver: "SimulatedTransport") -> None:
        """Creates an empty direction. Items are delivered in the context of the receiver's process."""
        self.link = link
        self.is_over = False
        """Whether the direction has ended: the connection is broken, or the receiver has closed it."""
        self.unanswered: Callable[[], None] | None = None
        """A callback for each write to a machine without power; None while the machine has power."""
        self._faults = link.write_faults
        self._receiver = receiver
        self._loop = receiver.loop
        self._context = receiver.owner.context
        self._ends = receiver.address_text("peername"), receiver.address_text("sockname")
        self._under_way: deque[tuple[float, Parcel]] = deque()
        self._last_s = 0.0
        self._is_broken = False
        self._timer: asyncio.TimerHandle | None = None

    def write(self, data: bytes) -> None:
        """Sends data, subject to the faults of the link."""
        if self.is_over:
            return
        for observe in self.link.observers:
            observe(*self._ends, data)
        if self._faults.are_any:
            self._write_with_faults(data)
        else:
            self.send(data)
        if self.unanswered is not None:
            self.unanswered()

    def send(self, parcel: Parcel) -> None:
        """Sends an item. It arrives after the link's latency, and after all items sent earlier."""
        when_s = self._loop.time() + self.link.latency_s()
        if when_s < self._last_s:
            when_s = self._last_s
        self._last_s = when_s
        self._under_way.append((when_s, parcel))
        if type(parcel) is bytes:
            self._receiver.expect(len(parcel))
        if self.link.is_blocked:
            self.link.held_back()
        elif self._timer is None and self.unanswered is None:
            self._arrive_at(when_s)

    def send_last(self, parcel: Parcel) -> None:
        """Sends the last item of the direction."""
        if not self.is_over:
            self.send(parcel)
            self.is_over = True

    def go_on(self, after_s: float) -> None:
        """Resumes deliveries after at least `after_s` seconds."""
        if self._under_way and self._timer is None and not self._is_held() and self.unanswered is None:
            self._arrive_at(max(self._under_way[0][0], self._loop.time() + after_s))

    def stop(self) -> None:
        """Drops all data in transit, and ends the direction."""
        self.is_over = True
        self._under_way.clear()
        self._cancel_timer()

    def power_failed_there(self, unanswered: Callable[[], None]) -> None:
        """Stops deliveries, because the receiver's machine has no power.

        Calls `unanswered` if data is waiting, and for each later write.
        """
        self.unanswered = unanswered
        self._cancel_timer()
        if self._under_way:
            unanswered()

    def power_failed_here(self) -> None:
        """Stops sending, because the sender's machine has no power. Sent data still arrives, unless the link holds it."""
        self.is_over = True
        if self.link.is_blocked:
            self.stop()

    def break_now(self, error: OSError) -> None:
        """Breaks the connection for the receiver immediately, even if the link is blocked."""
        self.stop()
        self._is_broken = True
        self._under_way.append((0.0, error))
        self._arrive_at(self._loop.time())

    def _write_with_faults(self, data: bytes) -> None:
        for piece in self._faults.passed(data):
            if self.is_over:
                return
            if piece is None:
                self._receiver.break_off()
            else:
                self.send(piece)

    def _is_held(self) -> bool:
        link = self.link
        return link.is_held and (link.is_frozen or not self._is_broken)

    def _arrive_at(self, when_s: float) -> None:
        self._timer = self._loop.call_at(when_s, self._arrive, context=self._context)

    def _arrive(self) -> None:
        self._timer = None
        link = self.link
        if link.is_held and self._is_held():
            link.held_back()
            return
        under_way = self._under_way
        when_s, parcel = under_way.popleft()
        if under_way:
            now_s = self._loop.time()
            if when_s < now_s and type(parcel) is bytes:
                parcel = self._joined(parcel, now_s)
            if under_way:
                self._arrive_at(under_way[0][0])
        if type(parcel) is bytes:
            link.mix_data(link.name, parcel)
            self._receiver.arrived(parcel)
        elif isinstance(parcel, Signal):
            link.mix(link.name, parcel.value)
            self._receiver.signalled(parcel)
        elif isinstance(parcel, OSError):
            link.mix(link.name, parcel.errno or 0)
            self._receiver.failed(parcel)

    def _joined(self, data: bytes, now_s: float) -> bytes:
        """Returns the data, joined with the following data that is already due.

        Several items are due at once after the receiver was frozen or the link was blocked.
        """
        under_way, pieces = self._under_way, [data]
        while under_way and under_way[0][0] <= now_s and isinstance(piece := under_way[0][1], bytes):
            pieces.append(piece)
            under_way.popleft()
        return b"".join(pieces)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class SimulatedTransport(MemoryTransport):
    """One end of a connection. Written data arrives at the other end after the link's latency."""

    peer: "SimulatedTransport"
    outgoing: Direction
    incoming: Direction
    client_end: "SimulatedTransport"
    """The end that initiated the connection. It identifies the connection."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        owner: NetworkEndpoint,
        names: tuple[SocketName, SocketName],
        lost: Callable[["SimulatedTransport"], object],
    ) -> None:
        """Creates an end. `names` contains its address and the other end's address. `lost` is called when this end is lost."""
        super().__init__(loop, owner.context, {"sockname": names[0], "peername": names[1]})
        self.owner = owner
        self.process = owner.name
        self.listener: MemoryListener | None = None
        """The listener, until it accepts the connection."""
        self._lost = lost

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Returns the event loop."""
        return self._loop

    def address_text(self, which: str) -> str:
        """Returns the address of this end ("sockname") or of the other end ("peername"), as "10.0.0.3:50001"."""
        host, port = self.get_extra_info(which)
        return f"{host}:{port}"

    @property
    def is_lost(self) -> bool:
        """True if the connection has ended for this end's protocol."""
        return self._is_lost

    def expect(self, count: int) -> None:
        """Adds bytes in transit, which count against the sender's high-water mark."""
        self._incoming_bytes += count

    def arrived(self, data: bytes) -> None:
        """Passes data to the protocol, or keeps it while the protocol does not read."""
        if self._is_closing:
            return
        if self._is_reading and not self._incoming:
            self._note_read(len(data))
            self._protocol.data_received(data)
        else:
            self._incoming.append(data)

    def signalled(self, signal: Signal) -> None:
        """Accepts the connection, or ends it after all data has been read."""
        if signal is Signal.ACCEPTED:
            self._accept()
        else:
            self._has_peer_ended = True
            self._deliver()

    def failed(self, error: OSError) -> None:
        """Closes this end, and passes the error to its protocol."""
        self._is_closing = True
        self._lose(error)

    def break_off(self) -> None:
        """Breaks the connection: both ends receive a reset after the data in transit."""
        self.incoming.send_last(connection_reset())
        self.outgoing.send_last(connection_reset())

    def break_now(self, error: OSError) -> None:
        """Breaks the connection for this end immediately. All data in transit to it is lost."""
        if not self._is_lost:
            self._is_closing = True
            self.incoming.break_now(error)

    def reset_by_kernel(self) -> None:
        """Closes this end without notifying the killed process. The other end receives a reset after all written data."""
        self.outgoing.send_last(connection_reset())
        self.incoming.stop()
        self.vanish()

    def vanish(self) -> None:
        """Closes this end without notifying either protocol."""
        self._is_closing = self._is_lost = True
        self._incoming.clear()
        self._lost(self)

    def _accept(self) -> None:
        listener, self.listener = self.listener, None
        assert listener is not None
        if not listener.is_listening:
            self.reset_by_kernel()
            return
        protocol = listener.new_protocol()
        self.set_protocol(protocol)
        protocol.connection_made(self)

    def _send(self, data: bytes) -> None:
        self.outgoing.write(data)

    def _send_end(self) -> None:
        self.outgoing.send_last(Signal.END)

    def _send_reset(self) -> None:
        self.outgoing.send_last(connection_reset())

    def _lose(self, error: Exception | None) -> None:
        if self._is_lost:
            return
        self.incoming.stop()
        self._lost(self)
        if self.listener is None:
            super()._lose(error)
        else:
            self._is_lost = True


def connect_ends(client: SimulatedTransport, server: SimulatedTransport, there: Direction, back: Direction) -> None:
    """Connects two ends with the directions from client to server and back."""
    client.peer, server.peer = server, client
    client.client_end = server.client_end = client
    client.outgoing = server.incoming = there
    client.incoming = server.outgoing = back
