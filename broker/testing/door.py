"""The broker's door, through which all requests come in and all frames go out: here faults are made, and the journal is kept."""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import replace

from broker.message import properties as props
from broker.message import sysflag
from broker.message.errors import CorruptRecord
from broker.message.record import decode_records
from broker.protocol.codes import RequestCode, ResponseCode
from broker.protocol.command import ONEWAY_FLAG, RemotingCommand, encode_response
from broker.protocol.errors import ProtocolError
from broker.protocol.frame import FrameDecoder
from broker.protocol.headers import (
    CheckTransactionStateRequestHeader,
    ConsumerSendMsgBackRequestHeader,
    EndTransactionRequestHeader,
    PullMessageRequestHeader,
    SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
)
from broker.remoting.connection import Connection, RequestHandler
from broker.testing.journal import Journal, Kind
from broker.testing.like_apache import LikeApache
from broker.testing.memory_network import MemoryTransport

_SENDS: Final = frozenset({RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE})
_PULLS: Final = frozenset({RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE})
_DECISIONS: Final = {sysflag.TRANSACTION_COMMIT: "COMMIT", sysflag.TRANSACTION_ROLLBACK: "ROLLBACK"}
_LENGTH: Final = struct.Struct(">I")
_MOST_PULLS: Final = 1000
_TOOLS: Final = "TOOLS_CONSUMER"


class Faults:
    """What goes wrong from now on."""

    def __init__(self) -> None:
        self.decisions_to_lose = 0
        self.answers_to_lose = 0
        self.refuse_sends_with: ResponseCode | None = None
        self.refusals_left: int | None = None
        self.are_checks_held = False
        self.like_apache: LikeApache | None = None


class Door:
    """Stands between the connections and one broker; its `tap` between the broker and the network."""

    def __init__(self, broker: RequestHandler, faults: Faults, journal: Journal) -> None:
        """`broker` answers requests."""
        self.broker = broker
        self._faults = faults
        self._journal = journal
        self._connections: set[Connection] = set()
        self._latest: dict[Connection, list[RemotingCommand]] = {}
        self._pulls: dict[tuple[str, int], str] = {}
        self._answers_to_lose: set[tuple[str, int]] = set()
        self._held: deque[tuple[asyncio.Transport, bytes]] = deque()
        self._peers_outside: set[str] = set()
        self._heartbeats: dict[Connection, RemotingCommand] = {}
        self.asked_outside: set[str | None] = set()
        """The transactions that producers elsewhere were asked about and have not answered for yet."""

    # what comes in

    def on_connected(self, connection: Connection) -> None:
        """See RequestHandler."""
        self._connections.add(connection)
        if self._faults.like_apache is not None:
            self._faults.like_apache.meets(connection)
        self.broker.on_connected(connection)

    def on_disconnected(self, connection: Connection) -> None:
        """See RequestHandler."""
        self._connections.discard(connection)
        self._latest.pop(connection, None)
        self._heartbeats.pop(connection, None)
        self.broker.on_disconnected(connection)

    def on_requests(self, connection: Connection, requests: list[RemotingCommand]) -> None:
        """See RequestHandler."""
        seen = self._latest.get(connection, [])
        admitted = [
            request
            for request in requests
            # What the broker postponed comes again, and was looked at before.
            if any(request is other for other in seen) or self._is_admitted(connection, request)
        ]
        self._latest[connection] = admitted
        if admitted:
            self.broker.on_requests(connection, admitted)

    def _is_admitted(self, connection: Connection, request: RemotingCommand) -> bool:
        try:
            if request.code == RequestCode.END_TRANSACTION:
                return self._takes_decision(connection, request)
            if request.code in _SENDS:
                return self._takes_message(connection, request)
            if request.code in _PULLS:
                self._note_pull(connection, request)
            elif request.code == RequestCode.CONSUMER_SEND_MSG_BACK:
                self._note_sent_back(request)
            elif request.code == RequestCode.HEART_BEAT and connection.peer in self._peers_outside:
                self._heartbeats[connection] = request
        except ProtocolError:
            pass  # the broker says what is wrong with it
        return True

    def _takes_decision(self, connection: Connection, request: RemotingCommand) -> bool:
        header = request.decode_header(EndTransactionRequestHeader)
        decision = _DECISIONS.get(header.commit_or_rollback)
        keys, like_apache = (header.transaction_id or header.msg_id,), self._faults.like_apache
        if header.from_transaction_check:
            self.asked_outside.discard(keys[0])
        source = (
            f"the answer of {header.producer_group} to a check-back" if header.from_transaction_check else header.producer_group
        )
        if decision is None:
            self._journal.note(Kind.DECISION, f"{source}: UNKNOWN, no decision", keys)
            return like_apache is None or like_apache.takes_decision(header, keys[0])
        if self._faults.decisions_to_lose > 0:
            self._faults.decisions_to_lose -= 1
            self._journal.note(Kind.FAULT, f"{source}: {decision} was lost on its way, as the test asked for", keys)
            return False
        self._journal.note(Kind.DECISION, f"{source}: {decision}", keys)
        return like_apache is None or like_apache.takes_decision(header, keys[0])

    def _takes_message(self, connection: Connection, request: RemotingCommand) -> bool:
        header: SendMessageRequestHeader | SendMessageRequestHeaderV2
        if request.code == RequestCode.SEND_MESSAGE:
            header = request.decode_header(SendMessageRequestHeader)
        else:
            header = request.decode_header(SendMessageRequestHeaderV2)
        encoded = header.properties.encode()
        keys = (props.find(encoded, props.UNIQUE_KEY), *(props.find(encoded, props.KEYS) or "").split())
        is_half = props.find(encoded, props.TRANSACTION_PREPARED) == "true"
        kind, word = (Kind.HALF_MESSAGE, "half message") if is_half else (Kind.MESSAGE, "message")
        what = f"{header.producer_group} sends a {word} to {header.topic}"
        code = self._faults.refuse_sends_with
        if code is None or self._faults.refusals_left == 0:
            self._journal.note(kind, what, keys)
            if self._faults.answers_to_lose > 0 and not request.is_oneway:
                self._faults.answers_to_lose -= 1
                self._answers_to_lose.add((connection.peer, request.opaque))
                self._journal.note(Kind.FAULT, f"{what}: the answer was lost on its way, as the test asked for", keys)
            if is_half and self._faults.like_apache is not None:
                self._faults.like_apache.half_message_comes(header.producer_group)
            return True
        if self._faults.refusals_left is not None:
            self._faults.refusals_left -= 1
        self._journal.note(Kind.REFUSED, f"{what}: refused with {code.name}, as the test asked for", keys)
        if not request.is_oneway:
            connection.send(encode_response(request, code, remark="refused, as the test asked for"))
        return False

    def _note_pull(self, connection: Connection, request: RemotingCommand) -> None:
        header = request.decode_header(PullMessageRequestHeader)
        if header.consumer_group != _TOOLS:
            if len(self._pulls) >= _MOST_PULLS:
                del self._pulls[next(iter(self._pulls))]
            self._pulls[connection.peer, request.opaque] = header.consumer_group

    def _note_sent_back(self, request: RemotingCommand) -> None:
        header = request.decode_header(ConsumerSendMsgBackRequestHeader)
        keys = (header.origin_msg_id,)
        self._journal.note(Kind.SENT_BACK, f"{header.group} gives the message back: it wants it again later", keys)

    def become_like_apache(self, like_apache: LikeApache) -> None:
        """From now on the broker behaves so, also to those who are connected already."""
        self._faults.like_apache = like_apache
        for connection in self._connections:
            like_apache.meets(connection)

    def repeat_heartbeats(self) -> None:
        """Lets each client elsewhere send its latest heartbeat again: it cannot know how much time the test passes."""
        for connection, heartbeat in list(self._heartbeats.items()):
            connection.data_received(replace(heartbeat, flag=heartbeat.flag | ONEWAY_FLAG).encode())

    # what goes out

    def tap(self, transport: asyncio.Transport) -> asyncio.Transport:
        """What the broker writes to in the transport's place."""
        tapped = _Tapped(transport, self)
        if not isinstance(transport, MemoryTransport):
            self._peers_outside.add(tapped.peer)
        return tapped

    def outgoing(self, transport: asyncio.Transport, peer: str, data: bytes) -> bytes:
        """Looks at what the broker writes; what is left of it goes out."""
        if not self._pulls and len(data) < _LENGTH.size:
            return data
        kept = []
        for frame in _frames(data):
            if self._passes(transport, peer, frame):
                kept.append(frame)
        return b"".join(kept)

    def release_checks(self) -> int:
        """Sends the check-backs that were held; returns how many there were."""
        count = len(self._held)
        while self._held:
            transport, frame = self._held.popleft()
            if not transport.is_closing():
                transport.write(frame)
        return count

    def forget_checks(self) -> None:
        """The connections are gone."""
        self._held.clear()

    def _passes(self, transport: asyncio.Transport, peer: str, frame: bytes) -> bool:
        commands = FrameDecoder(len(frame)).feed(frame)
        if not commands:
            return True
        command = commands[0]
        if command.is_response:
            if (peer, command.opaque) in self._answers_to_lose:
                self._answers_to_lose.discard((peer, command.opaque))
                return False
            group = self._pulls.pop((peer, command.opaque), None)
            if group is not None and command.code == ResponseCode.SUCCESS:
                self._note_delivery(group, command.body)
            return True
        if command.code != RequestCode.CHECK_TRANSACTION_STATE:
            return True
        header = command.decode_header(CheckTransactionStateRequestHeader)
        keys = (header.transaction_id or header.msg_id,)
        if self._faults.are_checks_held:
            self._held.append((transport, frame))
            self._journal.note(Kind.FAULT, f"check-back to {peer}: held, as the test asked for", keys)
            return False
        if peer in self._peers_outside:
            self.asked_outside.add(keys[0])
        if self._faults.like_apache is not None and keys[0] is not None:
            self._faults.like_apache.check_leaves(transport, keys[0], frame)
        self._journal.note(Kind.CHECK, f"the broker asks the producer at {peer}: check-back", keys)
        return True

    def _note_delivery(self, group: str, body: bytes) -> None:
        try:
            records = decode_records(body)
        except CorruptRecord:
            return
        for record in records:
            topic, times = record.topic.decode(errors="replace"), record.reconsume_times
            again = f", redelivery {times}" if times else ""
            keys = (record.get_property(props.UNIQUE_KEY), *(record.get_property(props.KEYS) or "").split())
            self._journal.note(Kind.DELIVERY, f"{group} gets the message from {topic}{again}", keys)


class _Tapped(asyncio.Transport):
    """A transport whose outgoing frames the door looks at."""

    def __init__(self, transport: asyncio.Transport, door: Door) -> None:
        super().__init__()
        self._transport = transport
        self._door = door
        host, port = (transport.get_extra_info("peername") or ("?", 0))[:2]
        self.peer = f"{host}:{port}"

    def __getattribute__(self, name: str) -> Any:
        """All but `write` is the transport's own."""
        if name in {"write", "_transport", "_door", "peer"}:
            return object.__getattribute__(self, name)
        return getattr(object.__getattribute__(self, "_transport"), name)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if left := self._door.outgoing(self._transport, self.peer, bytes(data)):
            self._transport.write(left)


def _frames(data: bytes) -> Iterator[bytes]:
    position = 0
    while position < len(data):
        end = position + _LENGTH.size + int(_LENGTH.unpack_from(data, position)[0])
        yield data[position:end]
        position = end
