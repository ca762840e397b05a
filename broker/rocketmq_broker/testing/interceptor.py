"""Intercepts all requests to the broker and all frames from it, to inject faults and keep the journal."""

import asyncio
import time
from collections import deque
from collections.abc import Iterable
from typing import Final

from msgspec import Raw
from msgspec.structs import replace

from rocketmq_broker.message import properties as props
from rocketmq_broker.message import sysflag
from rocketmq_broker.message.errors import CorruptRecord
from rocketmq_broker.message.record import decode_records
from rocketmq_broker.message.text.printable import printable
from rocketmq_broker.protocol.codes import SEND_REQUESTS, RequestCode, ResponseCode, SerializeType
from rocketmq_broker.protocol.command import ONEWAY_FLAG, RemotingCommand, encode_response
from rocketmq_broker.protocol.errors import ProtocolError
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.protocol.headers.pull import PullMessageRequestHeader
from rocketmq_broker.protocol.headers.send import (
    ConsumerSendMsgBackRequestHeader,
    SendHeader,
    SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
)
from rocketmq_broker.protocol.headers.transaction import CheckTransactionStateRequestHeader, EndTransactionRequestHeader
from rocketmq_broker.remoting.connections.connection import Connection, RequestHandler
from rocketmq_broker.testing.apache import LikeApache
from rocketmq_broker.testing.journal import EventKind, Journal
from rocketmq_broker.testing.memory_network import MemoryTransport
from rocketmq_broker.testing.tapped import Tapped, frames

_PULLS: Final = frozenset({RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE})
_DECISIONS: Final = {sysflag.TRANSACTION_COMMIT_TYPE: "COMMIT", sysflag.TRANSACTION_ROLLBACK_TYPE: "ROLLBACK"}
_LENGTH_SIZE: Final = 4
_MAX_PULLS: Final = 1000
ANSWERS_WITHIN_S: Final = 1.0
"""The time in real seconds that a producer outside the test's event loop has to answer a check-back."""
_TOOLS: Final = "TOOLS_CONSUMER"
_STORED_NEVERTHELESS: Final = frozenset(
    {ResponseCode.FLUSH_DISK_TIMEOUT, ResponseCode.FLUSH_SLAVE_TIMEOUT, ResponseCode.SLAVE_NOT_AVAILABLE}
)
"""The codes with which a broker says that it stored a message, but less safely than it should."""


class Faults:
    """The faults that the test has requested. They persist when the broker restarts."""

    def __init__(self) -> None:
        self.decisions_to_lose = 0
        self.answers_to_lose = 0
        self.keys_of_answers_to_lose: set[str] = set()
        self.refuse_sends_with: ResponseCode | None = None
        self.refusals_left: int | None = None
        self.are_checks_held = False
        self.like_apache: LikeApache | None = None

    def take_code(self, *, is_stored: bool) -> ResponseCode | None:
        """Returns the response code that the test has requested for the next message, or None if there is none.

        Counts each returned code as used. `is_stored` selects the codes of messages that are stored, or those of messages
        that are refused.
        """
        code = self.refuse_sends_with
        if code is None or self.refusals_left == 0 or (code in _STORED_NEVERTHELESS) is not is_stored:
            return None
        if self.refusals_left is not None:
            self.refusals_left -= 1
        return code

    def takes_answer(self, keys: Iterable[str | None]) -> bool:
        """Returns whether a fault drops the response to a message with these keys. Counts each dropped response."""
        if self.answers_to_lose > 0:
            self.answers_to_lose -= 1
            return True
        found = self.keys_of_answers_to_lose.intersection(keys)
        self.keys_of_answers_to_lose -= found
        return bool(found)


class Interceptor:
    """Passes requests to one broker. `tap` wraps its connections, to intercept the frames that it sends."""

    def __init__(self, broker: RequestHandler, faults: Faults, journal: Journal) -> None:
        """Creates an interceptor. `broker` handles the requests."""
        self.broker = broker
        self._faults = faults
        self._journal = journal
        self._connections: set[Connection] = set()
        self._latest: dict[Connection, list[RemotingCommand]] = {}
        self._pulls: dict[tuple[str, int], str] = {}
        self._answers_to_lose: set[tuple[str, int]] = set()
        self._answers_to_change: dict[tuple[str, int], ResponseCode] = {}
        self._held: deque[tuple[asyncio.Transport, bytes]] = deque()
        self._peers_outside: set[str] = set()
        self._heartbeats: dict[Connection, RemotingCommand] = {}
        self._asked_outside: dict[tuple[str, str | None], float] = {}
        """Maps the outside producer and the transaction of an unanswered check-back to the end of the wait, in real time."""

    # requests

    def on_connected(self, connection: Connection) -> None:
        """Reports a new connection to the broker."""
        self._connections.add(connection)
        if self._faults.like_apache is not None:
            self._faults.like_apache.on_connected(connection)
        self.broker.on_connected(connection)

    def on_disconnected(self, connection: Connection) -> None:
        """Reports a closed connection to the broker."""
        self._connections.discard(connection)
        self._latest.pop(connection, None)
        self._heartbeats.pop(connection, None)
        for asked in [asked for asked in self._asked_outside if asked[0] == connection.peer]:
            del self._asked_outside[asked]
        self.broker.on_disconnected(connection)

    def on_requests(self, connection: Connection, requests: list[RemotingCommand]) -> None:
        """Passes the requests to the broker, except those that a fault drops."""
        seen = self._latest.get(connection, [])
        admitted: list[RemotingCommand] = []
        for request in requests:
            # The broker passes postponed requests again. They were handled before.
            is_known = any(request is other for other in seen)
            passed = request if is_known else self._admitted(connection, request)
            if passed is not None:
                admitted.append(passed)
        self._latest[connection] = admitted
        if admitted:
            self.broker.on_requests(connection, admitted)

    def connection(self, peer: str) -> Connection | None:
        """Returns the open connection with the address `peer`, or None if there is none."""
        return next((connection for connection in self._connections if connection.peer == peer), None)

    def _admitted(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        """Returns the request to pass to the broker, possibly modified, or None if the request is dropped."""
        try:
            if request.code in SEND_REQUESTS:
                return self._taken_message(connection, request)
            return request if self._is_admitted(connection, request) else None
        except ProtocolError:
            return request  # the broker reports the error

    def _is_admitted(self, connection: Connection, request: RemotingCommand) -> bool:
        if request.code == RequestCode.END_TRANSACTION:
            return self._accepts_decision(connection, request)
        if request.code == RequestCode.SEARCH_OFFSET_BY_TIMESTAMP and self._faults.like_apache is not None:
            answer = self._faults.like_apache.search_offset(request)
            if answer is not None:
                connection.send(answer)
            return answer is None
        if request.code in _PULLS:
            self._note_pull(connection, request)
        elif request.code == RequestCode.CONSUMER_SEND_MSG_BACK:
            self._note_sent_back(request)
        elif request.code == RequestCode.HEART_BEAT and connection.peer in self._peers_outside:
            self._heartbeats[connection] = request
        return True

    def _accepts_decision(self, connection: Connection, request: RemotingCommand) -> bool:
        header = request.decode_header(EndTransactionRequestHeader)
        decision = _DECISIONS.get(header.commit_or_rollback)
        keys = (header.transaction_id or header.msg_id,)
        if header.from_transaction_check:
            self._asked_outside.pop((connection.peer, keys[0]), None)
        source = (
            f"the response of {header.producer_group} to a check-back" if header.from_transaction_check else header.producer_group
        )
        if decision is None:
            why = f"; {printable(request.remark)}" if request.remark else ""
            self._journal.note(EventKind.DECISION, f"{source}: UNKNOWN, no decision{why}", keys)
        elif self._faults.decisions_to_lose > 0:
            self._faults.decisions_to_lose -= 1
            self._journal.note(EventKind.FAULT, f"{source}: {decision} was lost (requested by the test)", keys)
            return False
        else:
            self._journal.note(EventKind.DECISION, f"{source}: {decision}", keys)
        return self._faults.like_apache is None or self._faults.like_apache.accepts_decision(header, keys[0])

    def _taken_message(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        header: SendHeader
        if request.code == RequestCode.SEND_MESSAGE:
            header = request.decode_header(SendMessageRequestHeader)
        else:
            header = request.decode_header(SendMessageRequestHeaderV2)
        encoded = header.properties.encode()
        unique_key = props.find(encoded, props.UNIQUE_KEY)
        keys = (unique_key, *(props.find(encoded, props.KEYS) or "").split())
        is_half = props.find(encoded, props.TRANSACTION_PREPARED) == "true"
        kind, word = (EventKind.HALF_MESSAGE, "half message") if is_half else (EventKind.MESSAGE, "message")
        what = f"{header.producer_group} sends a {word} to {header.topic}"
        if self._is_refused(connection, request, what, keys):
            return None
        self._journal.note(kind, what, keys)
        code = self._faults.take_code(is_stored=True)
        if code is not None and not request.is_oneway:
            self._answers_to_change[connection.peer, request.opaque] = code
            self._journal.note(EventKind.FAULT, f"{what}: stored, but the response was {code.name} (requested by the test)", keys)
        if not request.is_oneway and self._faults.takes_answer(keys):
            self._answers_to_lose.add((connection.peer, request.opaque))
            self._journal.note(EventKind.FAULT, f"{what}: the response was lost (requested by the test)", keys)
        if not is_half or self._faults.like_apache is None:
            return request
        kept = self._faults.like_apache.on_half_message(header.producer_group, unique_key, encoded)
        return request if kept == encoded else _with_header(request, replace(header, properties=kept.decode()))

    def _is_refused(self, connection: Connection, request: RemotingCommand, what: str, keys: Iterable[str | None]) -> bool:
        code = self._faults.take_code(is_stored=False)
        if code is None:
            return False
        self._journal.note(EventKind.REFUSED, f"{what}: refused with {code.name} (requested by the test)", keys)
        if not request.is_oneway:
            connection.send(encode_response(request, code, remark="refused (requested by the test)"))
        return True

    def _note_pull(self, connection: Connection, request: RemotingCommand) -> None:
        header = request.decode_header(PullMessageRequestHeader)
        if header.consumer_group != _TOOLS:
            if len(self._pulls) >= _MAX_PULLS:
                del self._pulls[next(iter(self._pulls))]
            self._pulls[connection.peer, request.opaque] = header.consumer_group

    def _note_sent_back(self, request: RemotingCommand) -> None:
        header = request.decode_header(ConsumerSendMsgBackRequestHeader)
        keys = (header.origin_msg_id,)
        self._journal.note(EventKind.SENT_BACK, f"{header.group} sends the message back to receive it again later", keys)

    def imitate_apache(self, like_apache: LikeApache) -> None:
        """Makes the broker behave like Apache's, for new connections and for those that already exist."""
        self._faults.like_apache = like_apache
        for connection in self._connections:
            like_apache.on_connected(connection)

    def repeat_heartbeats(self) -> None:
        """Repeats the latest heartbeat of each outside client.

        Outside clients send heartbeats in real time, which is slower than the test's time.
        """
        for connection, heartbeat in list(self._heartbeats.items()):
            connection.data_received(replace(heartbeat, flag=heartbeat.flag | ONEWAY_FLAG).encode())

    def real_wait_s(self) -> float:
        """Returns the seconds of real time to wait for responses of outside producers, or 0 if none are expected."""
        if not self._asked_outside:
            return 0
        now_s = time.monotonic()
        for asked in [asked for asked, until_s in self._asked_outside.items() if until_s <= now_s]:
            del self._asked_outside[asked]
        return max(self._asked_outside.values(), default=now_s) - now_s

    # frames

    def tap(self, transport: asyncio.Transport) -> asyncio.Transport:
        """Returns a transport that passes the broker's frames to `outgoing` before they are sent."""
        tapped = Tapped(transport, self.outgoing)
        if not isinstance(transport, MemoryTransport):
            self._peers_outside.add(tapped.peer)
        return tapped

    def outgoing(self, transport: asyncio.Transport, peer: str, data: bytes) -> bytes:
        """Returns the frames to send, without those that a fault drops."""
        if not self._pulls and len(data) < _LENGTH_SIZE:
            return data
        kept = []
        for frame in frames(data):
            if (passed := self._passed(transport, peer, frame)) is not None:
                kept.append(passed)
        return b"".join(kept)

    def release_checks(self) -> int:
        """Sends the held check-backs. Returns their number."""
        count = len(self._held)
        while self._held:
            transport, frame = self._held.popleft()
            if not transport.is_closing():
                transport.write(frame)
        return count

    def forget_checks(self) -> None:
        """Drops the held check-backs. Call this method when their connections are closed."""
        self._held.clear()

    def _passed(self, transport: asyncio.Transport, peer: str, frame: bytes) -> bytes | None:
        """Returns the frame to send, possibly modified; None to drop the frame."""
        commands = FrameDecoder(len(frame)).feed(frame)
        if not commands:
            return frame
        command = commands[0]
        if command.is_response:
            return self._passed_answer(peer, command, frame)
        if command.code != RequestCode.CHECK_TRANSACTION_STATE:
            return frame
        header = command.decode_header(CheckTransactionStateRequestHeader)
        return frame if self._check_passes(transport, peer, header, frame) else None

    def _passed_answer(self, peer: str, answer: RemotingCommand, frame: bytes) -> bytes | None:
        asked = peer, answer.opaque
        code = self._answers_to_change.pop(asked, None)
        if asked in self._answers_to_lose:
            self._answers_to_lose.discard(asked)
            return None
        group = self._pulls.pop(asked, None)
        if group is not None and answer.code == ResponseCode.SUCCESS:
            self._note_delivery(group, answer.body)
        return frame if code is None or answer.code != ResponseCode.SUCCESS else replace(answer, code=code).encode()

    def _check_passes(
        self, transport: asyncio.Transport, peer: str, header: CheckTransactionStateRequestHeader, frame: bytes
    ) -> bool:
        key, like_apache = header.transaction_id or header.msg_id, self._faults.like_apache
        if like_apache is not None and key is not None and not like_apache.on_check(peer, header, key):
            return False
        if self._faults.are_checks_held:
            self._held.append((transport, frame))
            self._journal.note(EventKind.FAULT, f"check-back to {peer}: held (requested by the test)", (key,))
            return False
        if peer in self._peers_outside:
            self._asked_outside[peer, key] = time.monotonic() + ANSWERS_WITHIN_S
        self._journal.note(EventKind.CHECK, f"the broker asks the producer at {peer}: check-back", (key,))
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
            self._journal.note(EventKind.DELIVERY, f"{group} gets the message from {topic}{again}", keys)


def _with_header(request: RemotingCommand, header: SendHeader) -> RemotingCommand:
    """Returns the request with another header."""
    if request.serialize_type is SerializeType.JSON:
        return replace(request, json_fields=Raw(header.encode_json()), decoded=None)
    return replace(request, binary_fields=header.encode_binary(), decoded=None)
