"""A hostile client sends forged requests. Every honest transaction still ends as its producer decided."""

from collections.abc import Callable

import pytest

from rocketmq_broker.message import sysflag
from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.protocol.bodies.heartbeat import ConsumerData, HeartbeatData, SubscriptionData
from rocketmq_broker.protocol.codes import AdminRequestCode, RequestCode, ResponseCode
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.headers.send import ConsumerSendMsgBackRequestHeader
from rocketmq_broker.protocol.headers.topic import ViewMessageRequestHeader
from rocketmq_broker.protocol.headers.transaction import ResumeCheckHalfMessageRequestHeader
from rocketmq_broker.protocol.headers.transaction_admin import DecideTransactionRequestHeader, ShowTransactionRequestHeader
from rocketmq_broker.store import Appended
from tests.unit.server.hostile_wire import AS_HALF, HEAD_LENGTH, HostileWire, batch, end, forged_record, sent
from tests.unit.server.transaction_broker import (
    DISCARD_TOPIC,
    HALF_TOPIC,
    OP_TOPIC,
    STORE_HOST,
    Producer,
    TransactionBroker,
)

COMMIT, ROLLBACK = sysflag.TRANSACTION_COMMIT_TYPE, sysflag.TRANSACTION_ROLLBACK_TYPE


@pytest.fixture
def wire(broker: TransactionBroker) -> HostileWire:
    return HostileWire(broker)


def bodies(broker: TransactionBroker, topic: str = "orders", queue_id: int = 2) -> list[bytes]:
    return [record.body for record in broker.records(topic, queue_id)]


PREPARED_FLAG = {"sys_flag": sysflag.TRANSACTION_PREPARED_TYPE}


def a_plain_message_that_claims_to_be_committed(wire: HostileWire, half: Appended, born_ms: int) -> None:
    header = sent("A", born_ms, sys_flag=COMMIT)
    wire.ask(RequestCode.SEND_MESSAGE_V2, header, b"forged")
    wire.tell(RequestCode.SEND_MESSAGE_V2, header, b"forged")
    wire.ask(RequestCode.SEND_BATCH_MESSAGE, sent("A", born_ms, sys_flag=COMMIT, batch=True), batch(header.properties, b"forged"))


def a_half_message_that_claims_to_be_a_later_copy(wire: HostileWire, half: Appended, born_ms: int) -> None:
    for name, value in (("TRANSACTION_CHECK_TIMES", "1"), ("TRAN_PREPARED_QUEUE_OFFSET", str(half.queue_offset))):
        header = sent("A", born_ms, AS_HALF, (name, value), (name, value), **PREPARED_FLAG)
        assert wire.ask(RequestCode.SEND_MESSAGE_V2, header, b"forged") == ResponseCode.SUCCESS


def a_twin_that_its_sender_commits(wire: HostileWire, half: Appended, born_ms: int) -> None:
    """Sends a half message like the attacked one, and commits it.

    Both have the same id, group, time and body size, which are all the values that a client can choose.
    """
    wire.ask(RequestCode.SEND_MESSAGE_V2, sent("A", born_ms, AS_HALF, **PREPARED_FLAG), b"twin")
    twin = wire.broker.records(HALF_TOPIC)[-1]
    place = Appended(twin.commit_log_offset, twin.queue_offset, 0)
    assert wire.ask(RequestCode.END_TRANSACTION, end(place, COMMIT)) == ResponseCode.SUCCESS


ATTACKS = [
    a_plain_message_that_claims_to_be_committed,
    a_half_message_that_claims_to_be_a_later_copy,
    a_twin_that_its_sender_commits,
]
Attack = Callable[[HostileWire, Appended, int], None]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
@pytest.mark.parametrize("answer", [COMMIT, ROLLBACK])
@pytest.mark.parametrize("is_index_enabled", [True, False])
def test_the_producers_decision_counts_after_the_next_start(attack: Attack, answer: int, is_index_enabled: bool) -> None:
    broker, producer = TransactionBroker(is_index_enabled=is_index_enabled), Producer()
    broker.send(producer, "before")
    half = broker.send(producer, "A", b"genuine")
    attack(HostileWire(broker), half, broker.now_ms)

    after = broker.restarted()
    assert [one.checks for one in after.messages if one.commit_log_offset == half.commit_log_offset] == [0]
    after.end(producer, half, answer)

    assert bodies(after).count(b"genuine") == (1 if answer == COMMIT else 0)
    assert b"forged" not in bodies(after)
    assert len(after.restarted().messages) == len(after.messages)


def record_inside_a_body(wire: HostileWire, **record: object) -> int:
    """Sends a message whose body is a record. Returns the commit log offset of the body."""
    at = wire.broker.store.written_position + HEAD_LENGTH
    body = forged_record(at, **record)
    assert wire.ask(RequestCode.SEND_MESSAGE_V2, sent("carrier", 0), body) == ResponseCode.SUCCESS
    assert wire.broker.store.read(at) == body
    return at


@pytest.mark.parametrize(
    ("topic", "destination"),
    [(DISCARD_TOPIC, "orders"), (DISCARD_TOPIC, OP_TOPIC), (DISCARD_TOPIC, "SCHEDULE_TOPIC_XXXX"), (HALF_TOPIC, "orders")],
)
def test_a_record_forged_inside_a_body_cannot_be_resumed(
    broker: TransactionBroker, wire: HostileWire, topic: str, destination: str
) -> None:
    at = record_inside_a_body(wire, topic=topic.encode(), queue_offset=0, REAL_TOPIC=destination)
    header = ResumeCheckHalfMessageRequestHeader(msg_id=offset_message_id(STORE_HOST, at))
    assert wire.ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, header) == ResponseCode.SYSTEM_ERROR
    assert broker.records(HALF_TOPIC) == []
    assert len(broker.messages) == 0


def test_a_record_forged_inside_a_body_decides_nothing(broker: TransactionBroker, producer: Producer) -> None:
    first = broker.send(producer, "A", b"genuine")
    wire = HostileWire(broker)
    at = record_inside_a_body(wire, topic=HALF_TOPIC.encode(), queue_offset=7, UNIQ_KEY="A")
    after = broker.restarted()
    place = Appended(at, 7, 0)
    assert HostileWire(after).ask(RequestCode.END_TRANSACTION, end(place, ROLLBACK)) == ResponseCode.SYSTEM_ERROR
    after.end(producer, first, COMMIT)
    assert b"genuine" in bodies(after)


@pytest.mark.parametrize("topic", [HALF_TOPIC, DISCARD_TOPIC, "orders"])
def test_a_record_forged_inside_a_body_is_neither_shown_nor_sent_back_nor_decided(
    broker: TransactionBroker, wire: HostileWire, topic: str
) -> None:
    subscribe(wire, "g", "orders")
    at = record_inside_a_body(wire, topic=topic.encode(), queue_offset=0)
    decide = DecideTransactionRequestHeader(half_offset=at, commit=True, reason="mine")
    back = ConsumerSendMsgBackRequestHeader(offset=at, group="g", delay_level=1)
    assert wire.ask(RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequestHeader(offset=at)) == ResponseCode.SYSTEM_ERROR
    assert wire.ask(RequestCode.CONSUMER_SEND_MSG_BACK, back) == ResponseCode.SYSTEM_ERROR
    assert wire.ask(AdminRequestCode.DECIDE_TRANSACTION, decide) == ResponseCode.QUERY_NOT_FOUND
    shown = wire.answer(AdminRequestCode.SHOW_TRANSACTION, ShowTransactionRequestHeader(half_offset=at))
    assert b'"transactions":[]' in shown.body
    assert broker.records("SCHEDULE_TOPIC_XXXX") == []


def subscribe(wire: HostileWire, group: str, *topics: str) -> None:
    subscriptions = [SubscriptionData(topic=topic) for topic in topics]
    data = HeartbeatData(client_id="c", consumer_data_set=[ConsumerData(group_name=group, subscription_data_set=subscriptions)])
    assert wire.ask(RequestCode.HEART_BEAT, None, data.encode()) == ResponseCode.SUCCESS


def test_an_undecided_message_is_not_handed_to_consumers_by_sending_it_back(
    broker: TransactionBroker, producer: Producer, wire: HostileWire
) -> None:
    half = broker.send(producer, "A", b"genuine")
    subscribe(wire, "g", "orders", HALF_TOPIC)
    back = ConsumerSendMsgBackRequestHeader(offset=half.commit_log_offset, group="g", delay_level=1)
    assert wire.ask(RequestCode.CONSUMER_SEND_MSG_BACK, back) == ResponseCode.NO_PERMISSION
    broker.now_ms += 60_000
    wire.deliver_due()
    assert broker.records("%RETRY%g") == []


DOUBLED = [
    pytest.param([("REAL_TOPIC", "SCHEDULE_TOPIC_XXXX"), ("REAL_TOPIC", OP_TOPIC), ("REAL_QID", "0")], id="system topics"),
    pytest.param([("REAL_TOPIC", "orders")] * 2 + [("REAL_QID", "99999")] * 2, id="no such queue"),
    pytest.param([("REAL_QID", "x"), ("REAL_QID", "-1"), ("REAL_QID", "-1")], id="no queue"),
]


@pytest.mark.parametrize("claimed", DOUBLED)
@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_transaction_that_claims_a_destination_goes_where_it_was_sent(
    broker: TransactionBroker, wire: HostileWire, claimed: list[tuple[str, str]], is_restarted: bool
) -> None:
    asked = Producer("127.0.0.1:6666")
    header: CommandHeader = sent("A", 0, *claimed, AS_HALF, *claimed, **PREPARED_FLAG)
    assert wire.ask(RequestCode.SEND_MESSAGE_V2, header, b"mine") == ResponseCode.SUCCESS
    now = broker.restarted() if is_restarted else broker
    now.online(asked)
    now.tick(5000)

    (check,) = asked.checks
    assert check.topic == "orders"
    now.end(asked, check, COMMIT)

    assert bodies(now) == [b"mine"]
    assert bodies(now, "SCHEDULE_TOPIC_XXXX", 0) == []


def test_a_transaction_that_claims_a_destination_can_be_discarded(broker: TransactionBroker, wire: HostileWire) -> None:
    wire.ask(RequestCode.SEND_MESSAGE_V2, sent("A", 0, ("REAL_QID", "x"), ("REAL_QID", "y"), AS_HALF, **PREPARED_FLAG), b"mine")
    broker.online(Producer())
    for _ in range(broker.policy.check_max + 1):
        broker.tick(5000)
    assert bodies(broker, DISCARD_TOPIC, 0) == [b"mine"]


@pytest.mark.parametrize(("more", "changes"), [((("DELAY", "3"),), {}), ((), {"topic": "%RETRY%credit_service"})])
def test_a_message_that_cannot_begin_a_transaction_is_refused_as_illegal(
    wire: HostileWire, broker: TransactionBroker, more: tuple[tuple[str, str], ...], changes: dict[str, str]
) -> None:
    header = sent("A", broker.now_ms, AS_HALF, *more, **PREPARED_FLAG, **changes)
    assert wire.ask(RequestCode.SEND_MESSAGE_V2, header, b"body") == ResponseCode.MESSAGE_ILLEGAL
    assert len(broker.messages) == 0
