"""Simulates the second copy of a half message, which Apache's broker writes at a check.

The copy is checked although the transaction has already been decided. A COMMIT then delivers the message again.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from rocketmq_broker.message import properties as props
from rocketmq_broker.message import sysflag, topics
from rocketmq_broker.message.record import Record
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers.send import SendMessageRequestHeaderV2
from rocketmq_broker.protocol.headers.transaction import CheckTransactionStateRequestHeader, EndTransactionRequestHeader
from rocketmq_broker.remoting.connections.connection import Connection, RequestHandler
from rocketmq_broker.testing.apache.unknown_producer import UnknownProducer
from rocketmq_broker.testing.journal import EventKind, Journal
from rocketmq_broker.testing.transactions import Inspection


class BrokerAccess(Protocol):
    """Access to the broker and its connections (see `Interceptor`)."""

    broker: RequestHandler
    """The broker's request handler."""

    def connection(self, peer: str) -> Connection | None:
        """Returns the open connection with the address `peer`, or None if there is none."""


@dataclass(slots=True)
class _Copy:
    header: EndTransactionRequestHeader
    checks: int
    is_asked: bool = False
    timer: asyncio.TimerHandle | None = None


class SecondCopies:
    """Stores the second copies of half messages, keyed by transaction id."""

    def __init__(
        self, access: BrokerAccess, unknown_producer: UnknownProducer, journal: Journal, *, check_interval_s: float, check_max:
        int, is_shut: Callable[[], bool], ) -> None:  # fmt: skip
        """Creates a store without copies. `is_shut` returns whether the broker is stopped."""
        self.access = access
        self._unknown_producer = unknown_producer
        self._journal = journal
        self._check_interval_s = check_interval_s
        self._check_max = check_max
        self._is_shut = is_shut
        self._copies: dict[str, _Copy] = {}
        self._turn = 0

    def check_in(self, seconds: float, key: str, header: EndTransactionRequestHeader, checks: int) -> None:
        """Schedules checks of the copy until it is decided.

        `seconds` is the time until the first check. `checks` is the number of checks so far.
        """
        self.forget(key)
        copy = self._copies[key] = _Copy(header, checks)
        copy.timer = asyncio.get_running_loop().call_later(seconds, self._check, key)

    def forget(self, key: str) -> None:
        """Drops the copy and cancels its checks."""
        copy = self._copies.pop(key, None)
        if copy is not None and copy.timer is not None:
            copy.timer.cancel()

    def clear(self) -> None:
        """Drops all copies and cancels their checks."""
        for key in list(self._copies):
            self.forget(key)

    def is_asked(self, key: str) -> bool:
        """Returns whether a check-back was sent for the copy."""
        return key in self._copies and self._copies[key].is_asked

    def settle(self, key: str, commit_or_rollback: int) -> None:
        """Handles a producer's response to a check-back for the copy. After UNKNOWN, the copy is checked again."""
        if commit_or_rollback == sysflag.TRANSACTION_NOT_TYPE:
            return
        header = self._copies[key].header
        self.forget(key)
        if commit_or_rollback == sysflag.TRANSACTION_COMMIT_TYPE:
            self.deliver_again(key, header.commit_log_offset)

    def deliver_again(self, key: str, commit_log_offset: int) -> None:
        """Delivers the message of a half message again. Does nothing if the half message has expired."""
        half = self._inspection.half_message(commit_log_offset)
        if half is None:
            return
        self._unknown_producer.ask(RequestCode.SEND_MESSAGE_V2, _sent_again(half), half.body)
        self._journal.note(EventKind.FAULT, "the message is delivered a second time, as Apache's broker does", [key])

    @property
    def _inspection(self) -> Inspection:
        return Inspection(self.access.broker, "")

    def _check(self, key: str) -> None:
        copy = self._copies[key]
        copy.timer = asyncio.get_running_loop().call_later(self._check_interval_s, self._check, key)
        if self._is_shut():
            return
        if copy.checks >= self._check_max:
            self.forget(key)
            self._journal.note(
                EventKind.FAULT, "the second copy of the half message is discarded, as Apache's broker does", [key]
            )
            return
        copy.checks += 1
        half = self._inspection.half_message(copy.header.commit_log_offset)
        producer = self._a_producer(copy.header.producer_group)
        if half is None or producer is None:
            return
        copy.is_asked = True
        self._journal.note(EventKind.FAULT, "the second copy of the half message is checked, as Apache's broker does", [key])
        check = CheckTransactionStateRequestHeader(
            tran_state_table_offset=half.queue_offset,
            commit_log_offset=half.commit_log_offset,
            msg_id=key,
            transaction_id=key,
        )
        producer.invoke_oneway(RequestCode.CHECK_TRANSACTION_STATE, check, _checked(half, copy.checks))

    def _a_producer(self, group: str) -> Connection | None:
        """Returns the connection of the group's next online producer, or None if no producer is online."""
        online = [self.access.connection(peer) for peer in self._inspection.producers(group)]
        connections = [connection for connection in online if connection is not None and connection.is_writable]
        self._turn += 1
        return connections[self._turn % len(connections)] if connections else None


def _destination(half: Record) -> tuple[str, int]:
    topic, queue_id = half.get_property(props.REAL_TOPIC), half.get_property(props.REAL_QUEUE_ID)
    return topic or half.topic.decode(), int(queue_id or half.queue_id)


def _checked(half: Record, checks: int) -> bytes:
    """Encodes the half message for a check-back, with its original topic and queue."""
    topic, queue_id = _destination(half)
    encoded = props.put(half.properties, props.TRANSACTION_CHECK_TIMES, str(checks))
    return replace(half, topic=topic.encode(), queue_id=queue_id, properties=encoded).encode()


def _sent_again(half: Record) -> SendMessageRequestHeaderV2:
    """Returns the header for sending the message without a transaction."""
    topic, queue_id = _destination(half)
    return SendMessageRequestHeaderV2(
        producer_group=half.get_property(props.PRODUCER_GROUP) or "",
        topic=topic,
        default_topic=topics.AUTO_CREATE_TOPIC,
        default_topic_queue_nums=4,
        queue_id=queue_id,
        sys_flag=half.sys_flag & ~sysflag.TRANSACTION_MASK & sysflag.SENT_BITS,
        born_timestamp=half.born_timestamp,
        flag=half.flag,
        properties=props.remove(half.properties, (props.TRANSACTION_PREPARED,)).decode(),
    )
