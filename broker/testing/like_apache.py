"""Where Apache's broker differs: outcomes that come twice, checks that count although nobody was asked, and whom it asks.

This broker gives a transaction one outcome, counts a check once it was sent, and first asks the producer that sent the half
message. Apache's rewrites the half message at every check. So a decision that comes late settles the first copy, and the second
one is checked all the same; its COMMIT delivers again. It heeds no earlier decision: a COMMIT delivers although the transaction
was committed, rolled back or discarded before. Its checks are used up while no producer is online, and it asks the members of a
group in turn. A test can ask for all of it, to see that its producers and consumers bear it.
"""

from __future__ import annotations

import asyncio
from typing import Final, cast

from broker.message import MessageExt, sysflag, topics
from broker.message import properties as props
from broker.message.record import decode_record, host_bytes, to_message
from broker.protocol.codes import RequestCode
from broker.protocol.command import RemotingCommand, encode_request
from broker.protocol.command_header import CommandHeader
from broker.protocol.frame import FrameDecoder
from broker.protocol.headers import (
    CheckTransactionStateRequestHeader,
    EndTransactionRequestHeader,
    SendMessageRequestHeaderV2,
)
from broker.protocol.heartbeat import HeartbeatData, ProducerData
from broker.remoting.connection import Connection, RequestHandler
from broker.testing.journal import Journal, Kind
from broker.testing.transactions import Inspection

_HEARTBEAT_S: Final = 30.0
_BORN_HOST: Final = host_bytes("127.0.0.1", 0)


class LikeApache:
    """Makes one broker behave so, from the time it is made."""

    def __init__(self, broker: RequestHandler, journal: Journal, check_interval_s: float) -> None:
        """`broker` answers requests."""
        self._broker = broker
        self._journal = journal
        self._check_interval_s = check_interval_s
        self._groups: dict[str, None] = {}
        self._asked: dict[str, tuple[asyncio.Transport, bytes]] = {}
        self._copies: set[str] = set()
        self._nobody = _Nobody(self)
        self._inspection = Inspection(broker, "")
        self._beating: asyncio.TimerHandle | None = None
        self._beat()

    def served_by(self, broker: RequestHandler) -> None:
        """The broker was started again."""
        self._broker = broker
        self._inspection = Inspection(broker, "")
        if self._beating is not None:
            self._beating.cancel()
        self._beat()

    def stop(self) -> None:
        """No timer is left."""
        if self._beating is not None:
            self._beating.cancel()

    def meets(self, connection: Connection) -> None:
        """A connection is there: for the broker all clients have one address, so that none is asked sooner than another."""
        connection.born_host = _BORN_HOST

    def half_message_comes(self, group: str) -> None:
        """From now on the group's checks count, whoever is online."""
        if group not in self._groups:
            self._groups[group] = None
            self._say_hello()

    def check_leaves(self, transport: asyncio.Transport, key: str, frame: bytes) -> None:
        """A producer is asked: a decision that comes after this one settles the first copy alone."""
        self._asked[key] = transport, frame

    def takes_decision(self, header: EndTransactionRequestHeader, key: str) -> bool:
        """Whether the broker is to have it; what concerns the second copy is done here."""
        is_decision = header.commit_or_rollback != sysflag.TRANSACTION_NOT
        is_commit = header.commit_or_rollback == sysflag.TRANSACTION_COMMIT
        if header.from_transaction_check and key in self._copies:
            self._copies.discard(key)
            if is_commit:
                (check,) = FrameDecoder().feed(self._asked.pop(key)[1])
                self._deliver_again(key, to_message(decode_record(check.body), ""))
            elif not is_decision:
                self._ask_later(key)
            return False
        if is_commit and self._inspection.is_decided(header.commit_log_offset):
            half = self._inspection.half_message(header.commit_log_offset)
            if half is not None:
                self._deliver_again(key, half)
            return False
        if is_decision and not header.from_transaction_check and key in self._asked:
            self._ask_later(key)
        return True

    def send(self, code: RequestCode, header: CommandHeader | None, body: bytes = b"") -> None:
        """Asks the broker as nobody in particular."""
        (request,) = FrameDecoder().feed(encode_request(code, header, body, opaque=0, oneway=True))
        self._broker.on_requests(cast(Connection, self._nobody), [request])

    def _beat(self) -> None:
        self._beating = asyncio.get_running_loop().call_later(_HEARTBEAT_S, self._beat)
        self._say_hello()

    def _say_hello(self) -> None:
        if self._groups:
            groups = [ProducerData(group_name=group) for group in self._groups]
            self.send(RequestCode.HEART_BEAT, None, HeartbeatData(client_id="nobody", producer_data_set=groups).encode())

    def _ask_later(self, key: str) -> None:
        asyncio.get_running_loop().call_later(self._check_interval_s, self._ask, key)

    def _ask(self, key: str) -> None:
        transport, frame = self._asked[key]
        if not transport.is_closing():
            self._copies.add(key)
            transport.write(frame)
            self._journal.note(Kind.CHECK, "the second copy of the half message is checked, as Apache's broker does", [key])

    def _deliver_again(self, key: str, message: MessageExt) -> None:
        """Delivers what a check-back held, or the half message itself."""
        given = message.properties
        kept = {name: value for name, value in given.items() if name != props.TRANSACTION_PREPARED}
        header = SendMessageRequestHeaderV2(
            producer_group=given.get(props.PRODUCER_GROUP, ""),
            topic=given.get(props.REAL_TOPIC, message.topic),
            default_topic=topics.AUTO_CREATE_TOPIC,
            default_topic_queue_nums=4,
            queue_id=int(given.get(props.REAL_QUEUE_ID, message.queue_id)),
            sys_flag=message.sys_flag & ~sysflag.TRANSACTION_MASK,
            born_timestamp=message.born_timestamp,
            flag=message.flag,
            properties="".join(f"{name}\1{value}\2" for name, value in kept.items()),
        )
        self.send(RequestCode.SEND_MESSAGE_V2, header, message.body)
        self._journal.note(Kind.FAULT, "the message is delivered a second time, as Apache's broker does", [key])


class _Nobody:
    """A producer of every group that is asked when no other can be, and does not know."""

    def __init__(self, like_apache: LikeApache) -> None:
        self._like_apache = like_apache
        self.peer = "nobody"
        self.peer_ip = "0.0.0.0"
        self.born_host = bytes(8)
        self.is_open = self.is_writable = True
        self.must_rest = False

    def invoke_oneway(self, code: int, header: CheckTransactionStateRequestHeader, body: bytes) -> None:
        """Answers a check: not decided."""
        if code == RequestCode.CHECK_TRANSACTION_STATE:
            answer = EndTransactionRequestHeader(
                producer_group="",
                tran_state_table_offset=header.tran_state_table_offset,
                commit_log_offset=header.commit_log_offset,
                commit_or_rollback=sysflag.TRANSACTION_NOT,
                from_transaction_check=True,
                msg_id=header.msg_id or "",
                transaction_id=header.transaction_id,
            )
            asyncio.get_running_loop().call_soon(self._like_apache.send, RequestCode.END_TRANSACTION, answer)

    def send(self, frame: bytes) -> None:
        """It reads no answers."""

    def send_at_once(self, frames: list[bytes]) -> None:
        """It reads no answers."""

    def postpone(self, requests: list[RemotingCommand]) -> None:
        """Nothing is left to do later."""

    def close(self) -> None:
        """It stays."""
