"""Tests how the broker of an operator's decision is found, and which requests it receives.

Brokers are simulated in memory, without sockets.
"""

from typing import Any, cast

import pytest

from rocketmq_broker.admin.broker_requests.discarded import newest_discarded
from rocketmq_broker.admin.decisions import decide, resume
from rocketmq_broker.admin.errors import CannotAsk, Refused
from rocketmq_broker.admin.session import Session
from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.message.record import Record, host_bytes
from rocketmq_broker.protocol.bodies.transaction_admin import TransactionInfo, TransactionList
from rocketmq_broker.protocol.headers.transaction_admin import (
    DecideTransactionRequestHeader,
)
from tests import stored_records

DISCARD_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"


def stored(topic: str, transaction_id: str, *, offset: int, queue_offset: int = 0, born_ms: int = 7, port: int = 1) -> Record:
    named = {"PGROUP": "orders", "REAL_TOPIC": "orders", "REAL_QID": "2", "TRANSACTION_CHECK_TIMES": "15"}
    host = host_bytes("127.0.0.1", port)
    return stored_records.stored(
        topic, properties={"UNIQ_KEY": transaction_id, **named}, queue_offset=queue_offset, commit_log_offset=offset,
        born_timestamp=born_ms, born_host=host, store_timestamp=1000 + offset, store_host=host,
    )  # fmt: skip


class Broker:
    """The data of a broker, and the requests that it received."""

    def __init__(self, address: str = "127.0.0.1:1", records: list[Record] | None = None, *, first: int = 0) -> None:
        self.address = address
        self.records = records or []
        self.transactions: list[TransactionInfo] = []
        self.decided: list[DecideTransactionRequestHeader] = []
        self.resumed: list[str] = []
        self.pulls = 0
        self.first = first
        """The queue offset of the first discarded message that has not expired."""

    async def query(self, topic: str, key: str) -> list[Record]:
        return [record for record in self.records if record.topic.decode() == topic and record.get_property("UNIQ_KEY") == key]

    async def offsets(self, topic: str, queue_id: int) -> tuple[int, int]:
        return self.first, max((record.queue_offset + 1 for record in self._discarded()), default=self.first)

    async def pull(self, topic: str, queue_id: int, queue_offset: int, count: int) -> tuple[list[Record], int]:
        assert (topic, queue_id) == (DISCARD_TOPIC, 0)
        self.pulls += 1
        page = [record for record in self._discarded() if queue_offset <= record.queue_offset < queue_offset + min(count, 3)]
        return page, queue_offset + len(page)

    async def view(self, commit_log_offset: int) -> Record:
        for record in self.records:
            if record.commit_log_offset == commit_log_offset:
                return record
        raise Refused(f"no message at commit log offset {commit_log_offset}")

    async def show(self, header: object) -> TransactionList:
        return TransactionList(transactions=self.transactions)

    async def decide(self, header: DecideTransactionRequestHeader) -> TransactionInfo:
        self.decided.append(header)
        return TransactionInfo("committed", 5)

    async def resume(self, message_id: str) -> None:
        self.resumed.append(message_id)

    def _discarded(self) -> list[Record]:
        return [record for record in self.records if record.topic.decode() == DISCARD_TOPIC]


def session(*brokers: Broker) -> Session:
    return Session(cast(Any, list(brokers)))


async def test_the_newest_discarded_messages_come_first_and_pulls_stop_when_there_are_enough() -> None:
    records = [stored(DISCARD_TOPIC, f"T{number}", offset=number, queue_offset=number) for number in range(100)]
    broker = Broker(records=records)

    found = await newest_discarded(cast(Any, broker), 4, lambda message: message.queue_offset % 2 == 0)

    assert [message.transaction_id for message in found] == ["T98", "T96", "T94", "T92"]
    assert broker.pulls <= 11


async def test_all_discarded_messages_are_found_up_to_those_that_expired() -> None:
    records = [stored(DISCARD_TOPIC, f"T{number}", offset=number, queue_offset=number) for number in range(40, 100)]

    found = await newest_discarded(cast(Any, Broker(records=records, first=40)), 1000, lambda message: True)

    assert [message.queue_offset for message in found] == list(range(99, 39, -1))


async def test_a_discarded_message_is_resumed_by_its_transaction_id() -> None:
    record = stored(DISCARD_TOPIC, "A", offset=500)
    other, having = Broker("127.0.0.1:1"), Broker("127.0.0.1:2", [record])

    _, resumed = await resume(session(other, having), "A")

    assert (other.resumed, having.resumed) == ([], [resumed.message_id])
    assert (resumed.message_id, resumed.is_resumed) == (offset_message_id(record.store_host, 500), True)


@pytest.mark.parametrize("word", ["A", offset_message_id(host_bytes("127.0.0.1", 1), 500)])
async def test_what_was_resumed_since_is_not_resumed_again(word: str) -> None:
    broker = Broker(records=[stored(DISCARD_TOPIC, "A", offset=500), stored(HALF_TOPIC, "A", offset=900)])

    with pytest.raises(Refused, match="discarded message already resumed"):
        await resume(session(broker), word)
    assert broker.resumed == []


async def test_a_message_that_was_not_discarded_is_not_resumed() -> None:
    half = stored(HALF_TOPIC, "A", offset=100)
    broker = Broker(records=[half])

    with pytest.raises(Refused, match="is not discarded"):
        await resume(session(broker), offset_message_id(half.store_host, 100))
    assert broker.resumed == []


async def test_half_messages_from_before_or_of_another_sending_do_not_count_as_resumed() -> None:
    broker = Broker(
        records=[
            stored(HALF_TOPIC, "A", offset=100),
            stored(DISCARD_TOPIC, "A", offset=500),
            stored(HALF_TOPIC, "A", offset=900, born_ms=8),
        ]
    )

    await resume(session(broker), "A")

    assert len(broker.resumed) == 1


async def test_a_message_id_goes_to_the_broker_that_it_names() -> None:
    first, second = [Broker(f"127.0.0.1:{port}", [stored(DISCARD_TOPIC, f"A{port}", offset=500, port=port)]) for port in (1, 2)]
    message_id = offset_message_id(host_bytes("127.0.0.1", 2), 500)

    await resume(session(first, second), message_id)

    assert (first.resumed, second.resumed) == ([], [message_id])


@pytest.mark.parametrize("word", ["A", offset_message_id(host_bytes("10.0.0.9", 2), 500)])
async def test_what_no_broker_has_is_not_resumed(word: str) -> None:
    brokers = Broker("127.0.0.1:1"), Broker("127.0.0.1:2")

    with pytest.raises(Refused):
        await resume(session(*brokers), word)
    assert [broker.resumed for broker in brokers] == [[], []]


async def test_the_broker_with_the_pending_transaction_decides() -> None:
    settled, pending = Broker("127.0.0.1:1"), Broker("127.0.0.1:2")
    settled.transactions, pending.transactions = [TransactionInfo("committed", 3)], [TransactionInfo("pending", 5)]

    await decide(session(settled, pending), "A", commit=True, reason="paid")

    assert settled.decided == []
    (header,) = pending.decided
    assert (header.transaction_id, header.half_offset, header.commit, header.reason) == ("A", None, True, "paid")


async def test_two_brokers_with_the_same_pending_transaction_are_for_the_operator_to_tell_apart() -> None:
    brokers = Broker("127.0.0.1:1"), Broker("127.0.0.1:2")
    for broker in brokers:
        broker.transactions = [TransactionInfo("pending", 5)]

    with pytest.raises(Refused, match=r"127\.0\.0\.1:1, 127\.0\.0\.1:2"):
        await decide(session(*brokers), "A", commit=True, reason="paid")
    assert [broker.decided for broker in brokers] == [[], []]


async def test_while_a_broker_is_silent_nothing_is_decided_by_guessing() -> None:
    silent, pending = Broker("127.0.0.1:1"), Broker("127.0.0.1:2")
    pending.transactions = [TransactionInfo("pending", 5)]

    async def show(header: object) -> TransactionList:
        raise CannotAsk("no connection")

    silent.show = show  # type: ignore[method-assign]
    with pytest.raises(CannotAsk, match="--broker-addr"):
        await decide(session(silent, pending), "A", commit=True, reason="paid")
    assert pending.decided == []


async def test_a_half_offset_alone_names_no_transaction_of_several_brokers() -> None:
    with pytest.raises(CannotAsk, match="--broker-addr"):
        await decide(session(Broker("127.0.0.1:1"), Broker("127.0.0.1:2")), "500", commit=True, reason="paid")
