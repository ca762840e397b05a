"""Invalid or reserved group names are refused in every request that can introduce a group."""

import pytest

from rocketmq_broker.message import topics
from rocketmq_broker.message.configs import SubscriptionGroupConfig
from rocketmq_broker.protocol.bodies.group import LockBatchRequestBody
from rocketmq_broker.protocol.bodies.heartbeat import ConsumerData, HeartbeatData, ProducerData, SubscriptionData
from rocketmq_broker.protocol.bodies.topic import SubscriptionGroupBody
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.headers.group import (
    CloneGroupOffsetRequestHeader,
    DeleteSubscriptionGroupRequestHeader,
    ResetOffsetRequestHeader,
)
from rocketmq_broker.protocol.headers.pull import (
    PullMessageRequestHeader,
    QueryConsumerOffsetRequestHeader,
    UpdateConsumerOffsetRequestHeader,
)
from rocketmq_broker.protocol.headers.send import ConsumerSendMsgBackRequestHeader
from rocketmq_broker.server.clients.lock_processor import LockProcessor
from rocketmq_broker.store import SubscriptionGroups
from tests.unit.server.conftest import Desk, Wire
from tests.unit.server.hostile_wire import HostileWire
from tests.unit.server.sending.test_send_back_processor import back, stored
from tests.unit.server.transaction_broker import HALF_TOPIC, OP_TOPIC, ROOT, TRANSACTION_GROUP, TransactionBroker

LONGEST = "g" * 120
TOO_LONG = "g" * 121
COMMIT_OFFSET, SUBSCRIPTION = 1, 4


@pytest.fixture
def wire() -> HostileWire:
    return HostileWire(TransactionBroker())


def heartbeat(*, consumers: tuple[str, ...] = (), producers: tuple[str, ...] = (), topic: str = "orders") -> bytes:
    subscription = SubscriptionData(topic=topic)
    return HeartbeatData(
        client_id="client",
        consumer_data_set=[ConsumerData(group_name=name, subscription_data_set=[subscription]) for name in consumers],
        producer_data_set=[ProducerData(group_name=name) for name in producers],
    ).encode()


def pull(group: str, topic: str = "orders", sys_flag: int = SUBSCRIPTION) -> PullMessageRequestHeader:
    return PullMessageRequestHeader(
        consumer_group=group, topic=topic, queue_id=0, queue_offset=0, max_msg_nums=1, sys_flag=sys_flag, commit_offset=7,
        suspend_timeout_millis=0, subscription="*", sub_version=0,
    )  # fmt: skip


def update(group: str, topic: str = "orders", offset: int = 7) -> UpdateConsumerOffsetRequestHeader:
    return UpdateConsumerOffsetRequestHeader(consumer_group=group, topic=topic, queue_id=0, commit_offset=offset)


def requests_as(group: str) -> list[tuple[RequestCode, CommandHeader | None, bytes]]:
    """Returns all requests that can introduce a consumer group."""
    return [
        (RequestCode.HEART_BEAT, None, heartbeat(consumers=(group,))),
        (RequestCode.PULL_MESSAGE, pull(group), b""),
        (RequestCode.LITE_PULL_MESSAGE, pull(group), b""),
        (RequestCode.CONSUMER_SEND_MSG_BACK, ConsumerSendMsgBackRequestHeader(offset=0, group=group, delay_level=0), b""),
        (RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, SubscriptionGroupBody(group_name=group).encode()),
        (RequestCode.UPDATE_CONSUMER_OFFSET, update(group), b""),
        (
            RequestCode.QUERY_CONSUMER_OFFSET,
            QueryConsumerOffsetRequestHeader(consumer_group=group, topic="orders", queue_id=0),
            b"",
        ),
        (RequestCode.CLONE_GROUP_OFFSET, CloneGroupOffsetRequestHeader(src_group="g", dest_group=group, offline=True), b""),
        (
            RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
            ResetOffsetRequestHeader(topic="orders", group=group, timestamp=0, is_force=True),
            b"",
        ),
    ]


@pytest.mark.parametrize("number", range(9))
@pytest.mark.parametrize(
    ("group", "words"),
    [(TOO_LONG, "at most 120"), ("x" * 256, "longer than group max length 255"), ("", "blank"), ("a b", "illegal characters")],
)
def test_a_name_that_no_consumer_group_can_have_is_refused_wherever_it_appears(
    wire: HostileWire, number: int, group: str, words: str
) -> None:
    answer = wire.answer(*requests_as(group)[number])
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert words in (answer.remark or "")
    assert wire.broker.topics.get(topics.retry_topic(group)) is None


def test_no_lock_is_given_to_a_group_that_cannot_be_one(desk: Desk) -> None:
    desk.dispatcher.add(LockProcessor(clock=desk.clock).handlers)
    body = LockBatchRequestBody(consumer_group=TOO_LONG, client_id="c", mq_set=[]).encode()
    assert desk.ask(RequestCode.LOCK_BATCH_MQ, None, body).code == ResponseCode.SYSTEM_ERROR


def test_a_message_sent_back_by_the_group_with_the_longest_name_comes_again_and_becomes_a_dead_letter(desk: Desk) -> None:
    desk.offsets.commit(LONGEST, "orders", 1, 0)
    record = stored(desk)
    assert desk.ask(RequestCode.CONSUMER_SEND_MSG_BACK, back(record, group=LONGEST)).code == ResponseCode.SUCCESS
    desk.deliver_due(10_000)
    (again,) = desk.messages(f"%RETRY%{LONGEST}")
    assert desk.ask(RequestCode.CONSUMER_SEND_MSG_BACK, back(again, group=LONGEST, delay_level=-1)).code == ResponseCode.SUCCESS
    assert len(desk.messages(f"%DLQ%{LONGEST}")) == 1


def test_a_group_that_apache_let_come_into_being_is_refused_as_well() -> None:
    """A request of a group with a name that is too long is refused, even if the store contains the group.

    Apache's 4.9 brokers accept such a name, respond SUCCESS to send-backs, and lose the messages.
    """
    broker = TransactionBroker()
    groups = SubscriptionGroups(ROOT / "config", broker.files)
    groups.put(SubscriptionGroupConfig(TOO_LONG), 1)
    wire = HostileWire(broker, groups=groups)
    answer = wire.answer(RequestCode.PULL_MESSAGE, pull(TOO_LONG))
    assert answer.code == ResponseCode.SYSTEM_ERROR


def test_one_group_that_cannot_be_one_costs_the_others_of_its_client_nothing(desk: Desk) -> None:
    wire = Wire()
    body = heartbeat(consumers=("g1", TOO_LONG, "g2"), producers=("p1", "a.b", "p2"))
    answer = desk.ask(RequestCode.HEART_BEAT, None, body, wire)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert [group.name for group in desk.consumers.all_groups()] == ["g1", "g2"]
    assert [desk.producers.connections(name) for name in ("p1", "a.b", "p2")] == [[wire], [], [wire]]


@pytest.mark.parametrize("number", [0, 3, 4, 5, 7, 8])
def test_no_client_acts_for_a_group_of_the_brokers(wire: HostileWire, number: int) -> None:
    before = wire.broker.consumer_offsets.as_json()
    assert wire.ask(*requests_as(TRANSACTION_GROUP)[number]) == ResponseCode.NO_PERMISSION
    assert wire.broker.consumer_offsets.as_json() == before


@pytest.mark.parametrize("topic", [HALF_TOPIC, OP_TOPIC, "orders"])
def test_no_request_writes_offsets_of_the_transactions(wire: HostileWire, topic: str) -> None:
    wire.broker.notes.note_offsets()
    wire.broker.consumer_offsets.commit("mine", topic, 0, 99)
    before = wire.broker.consumer_offsets.as_json()
    clone = CloneGroupOffsetRequestHeader(src_group="mine", dest_group=TRANSACTION_GROUP, topic=topic, offline=True)
    delete = DeleteSubscriptionGroupRequestHeader(group_name=TRANSACTION_GROUP, remove_offset=True)
    for code, header in (
        (RequestCode.UPDATE_CONSUMER_OFFSET, update(TRANSACTION_GROUP, topic)),
        (RequestCode.CLONE_GROUP_OFFSET, clone),
        (RequestCode.PULL_MESSAGE, pull(TRANSACTION_GROUP, topic, SUBSCRIPTION | COMMIT_OFFSET)),
        (RequestCode.DELETE_SUBSCRIPTIONGROUP, delete),
    ):
        assert wire.ask(code, header) == ResponseCode.NO_PERMISSION
        wire.tell(code, header)
    assert wire.broker.consumer_offsets.as_json() == before


@pytest.mark.parametrize("topic", [HALF_TOPIC, OP_TOPIC, "SCHEDULE_TOPIC_XXXX"])
def test_no_group_has_offsets_where_the_broker_alone_consumes(wire: HostileWire, topic: str) -> None:
    offsets = wire.broker.consumer_offsets
    offsets.commit("left by an earlier broker", topic, 0, 99)
    assert wire.ask(RequestCode.UPDATE_CONSUMER_OFFSET, update("mine", topic)) == ResponseCode.NO_PERMISSION
    assert wire.ask(RequestCode.PULL_MESSAGE, pull("mine", topic, SUBSCRIPTION | COMMIT_OFFSET)) == ResponseCode.NO_PERMISSION
    everything = CloneGroupOffsetRequestHeader(src_group="left by an earlier broker", dest_group="mine", offline=True)
    assert wire.ask(RequestCode.CLONE_GROUP_OFFSET, everything) == ResponseCode.SUCCESS
    assert offsets.topics_of("mine") == set()


def test_what_the_broker_alone_consumes_can_be_read_as_apaches_broker_has_it(wire: HostileWire) -> None:
    assert wire.ask(RequestCode.PULL_MESSAGE, pull("mine", HALF_TOPIC)) == ResponseCode.PULL_NOT_FOUND


def test_offsets_of_a_topic_that_cannot_be_one_are_refused(wire: HostileWire) -> None:
    for topic in ("", "a@b", "x" * 128):
        assert wire.ask(RequestCode.UPDATE_CONSUMER_OFFSET, update("mine", topic)) == ResponseCode.SYSTEM_ERROR
