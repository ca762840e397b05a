"""Tests how the broker of an operator's decision is found, and which requests it receives.

Brokers are simulated in memory, without sockets.
"""

from typing import Any, cast

import pytest

from rocketmq_broker.admin.broker_requests.discarded import newest_discarded
from rocketmq_broker.admin.decisions import decide, resume
from rocketmq_broker.admin.errors import CannotAsk, Refused
from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.message.record import Record, host_bytes
from rocketmq_broker.protocol.bodies.transaction_admin import TransactionInfo, TransactionList
from rocketmq_broker.protocol.headers.transaction_admin import DecideTransactionRequestHeader
from tests import stored_records
from tests.unit.admin.stored_broker import StoredBroker, session

DISCARD_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"


def stored(topic: str, transaction_id: str, *, offset: int, queue_offset: int = 0, born_ms: int = 7, port: int = 1) -> Record:
    named = {"PGROUP": "orders", "REAL_TOPIC": "orders", "REAL_QID": "2", "TRANSACTION_CHECK_TIMES": "15"}
    host = host_bytes("127.0.0.1", port)
    return stored_records.stored(
        topic, properties={"UNIQ_KEY": transaction_id, **named}, queue_offset=queue_offset, commit_log_offset=offset,
        born_timestamp=born_ms, born_host=host, store_timestamp=1000 + offset, store_host=host,
    )  # fmt: skip


class Broker(StoredBroker):
    """A broker with records and transactions, and the decisions that it received."""

    def __init__(self, *records: Record, address: str = "127.0.0.1:1") -> None:
        super().__init__(*records, address=address)
        self.transactions: list[TransactionInfo] = []
        self.decided: list[DecideTransactionRequestHeader] = []
        self.resumed: list[str] = []

    async def show(self, header: object) -> TransactionList:
        return TransactionList(transactions=self.transactions)

    async def decide(self, header: DecideTransactionRequestHeader) -> TransactionInfo:
        self.decided.append(header)
        return TransactionInfo("committed", 5)

    async def resume(self, message_id: str) -> None:
        self.resumed.append(message_id)


def two_brokers() -> tuple[Broker, Broker]:
    return Broker(address="127.0.0.1:1"), Broker(address="127.0.0.1:2")


async def test_the_newest_discarded_messages_come_first_and_pulls_stop_when_there_are_enough() -> None:
    records = [stored(DISCARD_TOPIC, f"T{number}", offset=number, queue_offset=number) for number in range(100)]
    broker = Broker(*records)

    found = await newest_discarded(cast(Any, broker), 4, lambda message: message.queue_offset % 2 == 0)

    assert [message.transaction_id for message in found] == ["T98", "T96", "T94", "T92"]
    assert broker.pulls <= 11


async def test_all_discarded_messages_are_found_up_to_those_that_expired() -> None:
    records = [stored(DISCARD_TOPIC, f"T{number}", offset=number, queue_offset=number) for number in range(40, 100)]

    found = await newest_discarded(cast(Any, Broker(*records)), 1000, lambda message: True)

    assert [message.queue_offset for message in found] == list(range(99, 39, -1))


async def test_a_discarded_message_is_resumed_by_its_transaction_id() -> None:
    record = stored(DISCARD_TOPIC, "A", offset=500)
    other, having = Broker(address="127.0.0.1:1"), Broker(record, address="127.0.0.1:2")

    _, resumed = await resume(session(other, having), "A")

    assert (other.resumed, having.resumed) == ([], [resumed.message_id])
    assert (resumed.message_id, resumed.is_resumed) == (offset_message_id(record.store_host, 500), True)


@pytest.mark.parametrize("word", ["A", offset_message_id(host_bytes("127.0.0.1", 1), 500)])
async def test_what_was_resumed_since_is_not_resumed_again(word: str) -> None:
    broker = Broker(stored(DISCARD_TOPIC, "A", offset=500), stored(HALF_TOPIC, "A", offset=900))

    with pytest.raises(Refused, match="discarded message already resumed"):
        await resume(session(broker), word)
    assert broker.resumed == []


async def test_a_message_that_was_not_discarded_is_not_resumed() -> None:
    half = stored(HALF_TOPIC, "A", offset=100)
    broker = Broker(half)

    with pytest.raises(Refused, match="is not discarded"):
        await resume(session(broker), offset_message_id(half.store_host, 100))
    assert broker.resumed == []


async def test_half_messages_from_before_or_of_another_sending_do_not_count_as_resumed() -> None:
    broker = Broker(
        stored(HALF_TOPIC, "A", offset=100),
        stored(DISCARD_TOPIC, "A", offset=500),
        stored(HALF_TOPIC, "A", offset=900, born_ms=8),
    )

    await resume(session(broker), "A")

    assert len(broker.resumed) == 1


async def test_a_message_id_goes_to_the_broker_that_it_names() -> None:
    first, second = [
        Broker(stored(DISCARD_TOPIC, f"A{port}", offset=500, port=port), address=f"127.0.0.1:{port}") for port in (1, 2)
    ]
    message_id = offset_message_id(host_bytes("127.0.0.1", 2), 500)

    await resume(session(first, second), message_id)

    assert (first.resumed, second.resumed) == ([], [message_id])


@pytest.mark.parametrize("word", ["A", offset_message_id(host_bytes("10.0.0.9", 2), 500)])
async def test_what_no_broker_has_is_not_resumed(word: str) -> None:
    brokers = two_brokers()

    with pytest.raises(Refused):
        await resume(session(*brokers), word)
    assert [broker.resumed for broker in brokers] == [[], []]


async def test_the_broker_with_the_pending_transaction_decides() -> None:
    settled, pending = two_brokers()
    settled.transactions, pending.transactions = [TransactionInfo("committed", 3)], [TransactionInfo("pending", 5)]

    await decide(session(settled, pending), "A", commit=True, reason="paid")

    assert settled.decided == []
    (header,) = pending.decided
    assert (header.transaction_id, header.half_offset, header.commit, header.reason) == ("A", None, True, "paid")


async def test_two_brokers_with_the_same_pending_transaction_are_for_the_operator_to_tell_apart() -> None:
    brokers = two_brokers()
    for broker in brokers:
        broker.transactions = [TransactionInfo("pending", 5)]

    with pytest.raises(Refused, match=r"127\.0\.0\.1:1, 127\.0\.0\.1:2"):
        await decide(session(*brokers), "A", commit=True, reason="paid")
    assert [broker.decided for broker in brokers] == [[], []]


async def test_while_a_broker_is_silent_nothing_is_decided_by_guessing() -> None:
    silent, pending = two_brokers()
    pending.transactions = [TransactionInfo("pending", 5)]

    async def show(header: object) -> TransactionList:
        raise CannotAsk("no connection")

    silent.show = show  # type: ignore[method-assign]
    with pytest.raises(CannotAsk, match="--broker-addr"):
        await decide(session(silent, pending), "A", commit=True, reason="paid")
    assert pending.decided == []


async def test_a_half_offset_alone_names_no_transaction_of_several_brokers() -> None:
    with pytest.raises(CannotAsk, match="--broker-addr"):
        await decide(session(*two_brokers()), "500", commit=True, reason="paid")
