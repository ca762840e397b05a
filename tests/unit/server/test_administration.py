"""Tests the requests of operators to a broker."""

import asyncio
import shutil
import time
from types import SimpleNamespace

import msgspec
import pytest

from rocketmq_broker.message import MessageQueue
from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.message.record import decode_records
from rocketmq_broker.protocol.bodies.broker import KVTable
from rocketmq_broker.protocol.bodies.group import (
    ConsumerConnection,
    ConsumeStats,
    ConsumeStatsList,
    LockBatchRequestBody,
    LockBatchResponseBody,
    ProducerConnection,
    ResetOffsetBody,
    UnlockBatchRequestBody,
)
from rocketmq_broker.protocol.bodies.heartbeat import ConsumerData, SubscriptionData
from rocketmq_broker.protocol.bodies.topic import (
    QueryConsumeTimeSpanBody,
    SubscriptionGroupBody,
    SubscriptionGroupWrapper,
    TopicStatsTable,
)
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.headers.group import (
    DeleteSubscriptionGroupRequestHeader,
    GetConsumerConnectionListRequestHeader,
    GetConsumeStatsInBrokerHeader,
    GetConsumeStatsRequestHeader,
    GetProducerConnectionListRequestHeader,
    QueryConsumeTimeSpanRequestHeader,
    ResetOffsetRequestHeader,
)
from rocketmq_broker.protocol.headers.pull import (
    GetEarliestMsgStoretimeRequestHeader,
    GetEarliestMsgStoretimeResponseHeader,
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)
from rocketmq_broker.protocol.headers.topic import (
    DeleteTopicRequestHeader,
    GetTopicStatsInfoRequestHeader,
    QueryMessageRequestHeader,
    ViewMessageRequestHeader,
)
from rocketmq_broker.protocol.queue_table import MessageQueueData
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.server.clients.lock_processor import LockProcessor
from rocketmq_broker.server.durability.checkpoints import Checkpoints
from rocketmq_broker.server.operators.broker_info_processor import BrokerInfoProcessor
from rocketmq_broker.server.operators.consumer_call_processor import ConsumerCallProcessor
from rocketmq_broker.server.operators.group_admin_processor import GroupAdminProcessor
from rocketmq_broker.server.operators.progress_processor import ProgressProcessor
from rocketmq_broker.server.operators.topic_admin_processor import TopicAdminProcessor
from rocketmq_broker.server.popping import InHand
from rocketmq_broker.server.popping.hidden_messages import HiddenMessages
from rocketmq_broker.server.pulling import query_processor
from rocketmq_broker.server.pulling.offset_processor import OffsetProcessor
from rocketmq_broker.server.pulling.query_processor import QueryProcessor
from rocketmq_broker.server.topics.topic_deletion import TopicDeletion
from rocketmq_broker.store import MessageStore
from tests.unit.server.conftest import IDENTITY, START_MS, Desk, Wire
from tests.unit.server.schedule.test_delayed_delivery import put_waiting
from tests.unit.store.conftest import append

QUERY = QueryMessageRequestHeader("orders", "k", 32, 0, START_MS * 2)
CONSUMER = ConsumerData(group_name="g", subscription_data_set=[SubscriptionData(topic="orders")])


@pytest.fixture
def desk(desk: Desk) -> Desk:
    shared = {"identity": IDENTITY, "store": desk.store, "topic_table": desk.topics, "consumer_groups": desk.consumers}
    lock = asyncio.Lock()
    deletion = TopicDeletion(desk.store, desk.offsets, lock, Checkpoints(desk.store, lock, 5))
    processors = [
        OffsetProcessor(store=desk.store, offsets=desk.offsets, offset_commits=desk.offset_commits, young_queue_bytes=500),
        QueryProcessor(store=desk.store, tasks=Tasks(), steady_ns=time.monotonic_ns),
        LockProcessor(clock=desk.clock),
        TopicAdminProcessor(**shared, offsets=desk.offsets, registration=None, deletion=deletion, tasks=Tasks()),
        GroupAdminProcessor(
            subscription_groups=desk.groups,
            consumer_groups=desk.consumers,
            producer_groups=desk.producers,
            offsets=desk.offsets,
            date_of=lambda steady_ms: steady_ms + 1000,
        ),
        ProgressProcessor(
            **shared,
            subscription_groups=desk.groups,
            offsets=desk.offsets,
            offset_commits=desk.offset_commits,
            in_hand=InHand(HiddenMessages(), desk.offsets, desk.store),
            clock=desk.clock,
        ),
        ConsumerCallProcessor(**shared, offsets=desk.offsets, tasks=Tasks()),
        BrokerInfoProcessor(
            store=desk.store,
            statistics=desk.statistics,
            put_times=desk.put_times,
            delayed_delivery=desk.delayed,
            in_hand=InHand(HiddenMessages(), desk.offsets, desk.store),
            settings_text="listenPort=10911\n",
            delete_expired=lambda: None,
            clock=desk.clock,
        ),
    ]
    for processor in processors:
        desk.dispatcher.add(processor.handlers)
    desk.topics.update(TopicConfig("orders", 2, 2))
    return desk


def put(desk: Desk, count: int = 1, encoded: bytes = b"KEYS\x01k") -> None:
    for number in range(count):
        append(desk.store, properties=encoded, store_timestamp=START_MS + number)
    desk.commit.settle()


def offset_of(desk: Desk, group: str = "g") -> tuple[int, int | None]:
    header = QueryConsumerOffsetRequestHeader(consumer_group=group, topic="orders", queue_id=0)
    answer = desk.ask(RequestCode.QUERY_CONSUMER_OFFSET, header)
    if answer.code != ResponseCode.SUCCESS:
        return answer.code, None
    return answer.code, answer.decode_header(QueryConsumerOffsetResponseHeader).offset


def test_a_new_group_starts_a_young_queue_at_0(desk: Desk) -> None:
    assert offset_of(desk) == (ResponseCode.SUCCESS, 0)
    put(desk, 2)
    assert offset_of(desk) == (ResponseCode.SUCCESS, 0)


def test_a_queue_that_has_lost_its_first_message_is_not_young(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    put(desk, 2)
    monkeypatch.setattr(MessageStore, "min_offset", lambda *_: 1)
    assert offset_of(desk) == (ResponseCode.QUERY_NOT_FOUND, None)


def test_a_new_group_chooses_for_itself_where_to_start_an_old_queue(desk: Desk) -> None:
    put(desk, 10)
    assert offset_of(desk) == (ResponseCode.QUERY_NOT_FOUND, None)


def test_an_offset_that_was_committed_is_told(desk: Desk) -> None:
    header = UpdateConsumerOffsetRequestHeader(consumer_group="g", topic="orders", queue_id=0, commit_offset=7)
    assert desk.ask(RequestCode.UPDATE_CONSUMER_OFFSET, header).code == ResponseCode.SUCCESS
    assert offset_of(desk) == (ResponseCode.SUCCESS, 7)


def test_a_queues_end_and_its_oldest_messages_time(desk: Desk) -> None:
    put(desk, 3)
    end = desk.ask(RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequestHeader(topic="orders", queue_id=0))
    assert end.decode_header(GetMaxOffsetResponseHeader).offset == 3
    for queue_id, expected in ((0, START_MS), (1, -1)):
        header = GetEarliestMsgStoretimeRequestHeader(topic="orders", queue_id=queue_id)
        oldest = desk.ask(RequestCode.GET_EARLIEST_MSG_STORETIME, header)
        assert oldest.decode_header(GetEarliestMsgStoretimeResponseHeader).timestamp == expected


def test_a_message_is_found_by_key_and_by_place(desk: Desk) -> None:
    put(desk, encoded=b"KEYS\x01one two\x02UNIQ_KEY\x01id")
    query = QueryMessageRequestHeader(topic="orders", key="two", max_num=8, begin_timestamp=0, end_timestamp=START_MS * 2)
    (record,) = desk.messages("orders")
    found = desk.ask(RequestCode.QUERY_MESSAGE, query)
    seen = desk.ask(RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequestHeader(offset=record.commit_log_offset))
    assert found.body == seen.body == record.encode()
    missing = desk.ask(RequestCode.QUERY_MESSAGE, msgspec.structs.replace(query, key="three"))
    assert missing.code == ResponseCode.QUERY_NOT_FOUND
    assert desk.ask(RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequestHeader(offset=9999)).code == ResponseCode.SYSTEM_ERROR


def test_locks_are_given_and_taken_back_by_frames(desk: Desk) -> None:
    queue = MessageQueueData(broker_name="broker-a", queue_id=0, topic="orders")

    def lock(client_id: str) -> list[MessageQueueData]:
        body = LockBatchRequestBody(consumer_group="g", client_id=client_id, mq_set=[queue]).encode()
        return LockBatchResponseBody.decode(desk.ask(RequestCode.LOCK_BATCH_MQ, body=body).body).lock_ok_mq_set

    assert lock("one") == [queue]
    assert lock("two") == []
    unlock = UnlockBatchRequestBody(consumer_group="g", client_id="one", mq_set=[queue]).encode()
    assert desk.ask(RequestCode.UNLOCK_BATCH_MQ, body=unlock).code == ResponseCode.SUCCESS
    assert lock("two") == [queue]


def test_a_topics_queues_are_told_with_their_ends(desk: Desk) -> None:
    put(desk, 3)
    answer = desk.ask(RequestCode.GET_TOPIC_STATS_INFO, GetTopicStatsInfoRequestHeader(topic="orders"))
    table = TopicStatsTable.decode(answer.body).offset_table
    full, empty = table[MessageQueue("orders", "broker-a", 0)], table[MessageQueue("orders", "broker-a", 1)]
    assert (full.min_offset, full.max_offset, full.last_update_timestamp) == (0, 3, START_MS + 2)
    assert (empty.max_offset, empty.last_update_timestamp) == (0, 0)


async def test_a_deleted_topic_takes_its_messages_and_offsets_along(desk: Desk) -> None:
    put(desk)
    desk.offsets.commit("g", "orders", 0, 1)
    desk.store.flush()
    folder = desk.store.config.consume_queue_directory / "orders"
    assert (folder / "0" / f"{0:020d}").exists()
    wire = Wire()
    desk.request(wire, RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicRequestHeader(topic="orders"))
    await answered(wire, 1)
    assert wire.answers[0].code == ResponseCode.SUCCESS
    assert not folder.exists()
    assert desk.topics.get("orders") is None
    assert desk.store.max_offset(b"orders", 0) == 0
    assert desk.offsets.get("g", "orders", 0) is None
    refused = desk.ask(RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicRequestHeader(topic="TBW102"))
    assert refused.code == ResponseCode.SYSTEM_ERROR


def test_a_groups_settings_are_set_listed_and_deleted(desk: Desk) -> None:
    body = SubscriptionGroupBody(group_name="g", retry_max_times=3).encode()
    assert desk.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body).code == ResponseCode.SUCCESS
    listed = SubscriptionGroupWrapper.decode(desk.ask(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG).body)
    assert listed.subscription_group_table["g"].retry_max_times == 3
    desk.offsets.commit("g", "orders", 0, 1)
    header = DeleteSubscriptionGroupRequestHeader(group_name="g", remove_offset=True)
    assert desk.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, header).code == ResponseCode.SUCCESS
    assert desk.groups.groups.get("g") is None
    assert desk.offsets.get("g", "orders", 0) is None


def test_who_is_online_is_told(desk: Desk) -> None:
    desk.heartbeat(Wire("127.0.0.1:1"), consumers=[CONSUMER], producers=("p",))
    consumers = desk.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, GetConsumerConnectionListRequestHeader(consumer_group="g"))
    told = ConsumerConnection.decode(consumers.body)
    assert [member.client_addr for member in told.connection_set] == ["127.0.0.1:1"]
    assert list(told.subscription_table) == ["orders"]
    producers = desk.ask(RequestCode.GET_PRODUCER_CONNECTION_LIST, GetProducerConnectionListRequestHeader(producer_group="p"))
    assert ProducerConnection.decode(producers.body).connection_set[0].client_id == "client@127.0.0.1:1"
    offline = desk.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, GetConsumerConnectionListRequestHeader(consumer_group="h"))
    assert offline.code == ResponseCode.CONSUMER_NOT_ONLINE


def test_a_groups_progress_is_told_queue_by_queue(desk: Desk) -> None:
    put(desk, 3)
    desk.offsets.commit("g", "orders", 0, 2)
    answer = desk.ask(RequestCode.GET_CONSUME_STATS, GetConsumeStatsRequestHeader(consumer_group="g"))
    offsets = ConsumeStats.decode(answer.body).offset_table[MessageQueue("orders", "broker-a", 0)]
    assert (offsets.broker_offset, offsets.consumer_offset, offsets.last_timestamp) == (3, 2, START_MS + 1)


def test_the_progress_of_all_groups_is_told_group_by_group(desk: Desk) -> None:
    put(desk, 3)
    for group, consumed in (("g", 2), ("h", 0)):
        desk.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=SubscriptionGroupBody(group_name=group).encode())
        desk.offsets.commit(group, "orders", 0, consumed)
    told = ConsumeStatsList.decode(
        desk.ask(RequestCode.GET_BROKER_CONSUME_STATS, GetConsumeStatsInBrokerHeader(is_order=False)).body
    )
    progress = {group: stats for of_group in told.consume_stats_list for group, stats in of_group.items()}
    queue = MessageQueue("orders", "broker-a", 0)
    assert {group: [one.offset_table[queue].consumer_offset for one in progress[group]] for group in "gh"} == {"g": [2], "h": [0]}
    in_order = desk.ask(RequestCode.GET_BROKER_CONSUME_STATS, GetConsumeStatsInBrokerHeader(is_order=True))
    assert all(not stats for one in ConsumeStatsList.decode(in_order.body).consume_stats_list for stats in one.values())


@pytest.mark.parametrize(
    ("size", "told"),
    [(1023, "1023 B"), (1536, "1.5 KiB"), (1024**2, "1.0 MiB"), (70 * 1024**3, "70.0 GiB"), (2048 * 1024**5, "2048.0 PiB")],
)
def test_the_size_of_the_disk_is_told_as_rocketmq_does(desk: Desk, monkeypatch: pytest.MonkeyPatch, size: int, told: str) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=size, free=1024))
    table = KVTable.decode(desk.ask(RequestCode.GET_BROKER_RUNTIME_INFO).body).table
    assert table["commitLogDirCapacity"] == f"Total : {told}, Free : 1.0 KiB."


def test_how_old_a_queue_is_and_how_far_a_group_is_behind_is_told_in_numbers_and_in_words(desk: Desk) -> None:
    put(desk, 3)
    desk.offsets.commit("g", "orders", 0, 2)
    desk.clock.now_ms = START_MS + 1000
    answer = desk.ask(RequestCode.QUERY_CONSUME_TIME_SPAN, QueryConsumeTimeSpanRequestHeader(topic="orders", group="g"))
    span = QueryConsumeTimeSpanBody.decode(answer.body).consume_time_span_set[0]
    assert (span.min_time_stamp, span.max_time_stamp, span.consume_time_stamp) == (START_MS, START_MS + 2, START_MS + 1)
    assert span.delay_time == 998
    for said, milliseconds in (
        (span.min_time_stamp_str, "000"),
        (span.max_time_stamp_str, "002"),
        (span.consume_time_stamp_str, "001"),
    ):
        seconds, _, rest = said.rpartition(":")
        assert time.mktime(time.strptime(seconds, "%Y-%m-%d#%H:%M:%S")) == START_MS // 1000
        assert rest == milliseconds


def test_a_reset_is_passed_on_to_every_member(desk: Desk) -> None:
    put(desk, 3)
    for queue_id in (0, 1):
        desk.offsets.commit("g", "orders", queue_id, 3)
    member = Wire()
    desk.heartbeat(member, consumers=[CONSUMER])
    header = ResetOffsetRequestHeader(topic="orders", group="g", timestamp=START_MS + 1, is_force=True)
    answer = desk.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
    assert ResetOffsetBody.decode(answer.body).offset_table[MessageQueue("orders", "broker-a", 0)] == 1
    ((code, _, body),) = member.requests
    assert (code, body) == (RequestCode.RESET_CONSUMER_CLIENT_OFFSET, answer.body)


def test_a_group_that_is_not_online_cannot_be_reset(desk: Desk) -> None:
    for queue_id in (0, 1):
        desk.offsets.commit("g", "orders", queue_id, 3)
    header = ResetOffsetRequestHeader(topic="orders", group="g", timestamp=0, is_force=True)
    assert desk.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header).code == ResponseCode.CONSUMER_NOT_ONLINE


def test_the_broker_tells_how_long_storing_took(desk: Desk) -> None:
    def figures() -> dict[str, str]:
        return KVTable.decode(desk.ask(RequestCode.GET_BROKER_RUNTIME_INFO).body).table

    assert figures()["putMessageDistributeTime"] == "null", "as RocketMQ says before it has measured"
    desk.put_times.observe(0.030, 7)
    desk.put_times.begin_minute()
    assert figures()["putMessageDistributeTime"].startswith("[<=0ms]:0 [0~10ms]:0 [10~50ms]:7 ")
    assert (figures()["putLatency99"], figures()["putLatency999"]) == ("30.00", "30.00")
    assert figures()["putMessageEntireTimeMax"] == "30"


def test_the_broker_tells_of_itself(desk: Desk) -> None:
    table = KVTable.decode(desk.ask(RequestCode.GET_BROKER_RUNTIME_INFO).body).table
    assert table["brokerVersionDesc"] == "V4_9_7"
    assert table["putTps"] == "0.0 0.0 0.0"
    assert table["runtime"] == "[ 0 days, 0 hours, 0 minutes, 0 seconds ]"
    assert desk.ask(RequestCode.GET_BROKER_CONFIG).body == b"listenPort=10911\n"


def test_a_setting_that_cannot_change_is_refused_by_name(desk: Desk) -> None:
    answer = desk.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"fileReservedTime=71\n")
    assert answer.code == ResponseCode.NO_PERMISSION
    assert (answer.remark or "").startswith("fileReservedTime: ")


def test_the_broker_tells_how_many_delayed_messages_of_each_level_it_delivered(desk: Desk) -> None:
    put_waiting(desk, "A")
    table = KVTable.decode(desk.ask(RequestCode.GET_BROKER_RUNTIME_INFO).body).table
    assert {name: text for name, text in table.items() if "schedule" in name} == {"scheduleMessageOffset_1": "0,1"}


@pytest.mark.parametrize("count", [-1, 65_536, 1 << 31])
def test_a_group_with_an_impossible_number_of_retry_queues_is_refused(desk: Desk, count: int) -> None:
    body = b'{"groupName":"g","retryQueueNums":%d}' % count
    assert desk.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, body).code == ResponseCode.SYSTEM_ERROR
    assert "g" not in desk.groups.groups


async def answered(wire: Wire, count: int) -> None:
    async with asyncio.timeout(10):
        while len(wire.answers) < count:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_messages_found_by_key_fit_into_a_frame(desk: Desk) -> None:
    for _ in range(6):
        append(desk.store, bytes(4 << 20), properties=b"KEYS\x01k")
        desk.commit.settle()
    wire = Wire()
    desk.request(wire, RequestCode.QUERY_MESSAGE, QUERY)
    await answered(wire, 1)

    (answer,) = wire.answers
    assert answer.code == ResponseCode.SUCCESS
    assert len(decode_records(answer.body)) == 3


@pytest.fixture
def in_tiny_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_processor, "SLICE_S", 0.0)


async def test_a_query_that_takes_long_is_answered_later_and_others_are_served_meanwhile(
    desk: Desk, in_tiny_slices: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(desk, 5)
    queries, other = Wire(), Wire()
    for _ in range(2):
        desk.request(queries, RequestCode.QUERY_MESSAGE, QUERY)
    assert queries.answers == []
    desk.request(other, RequestCode.GET_BROKER_CONFIG)
    assert len(other.answers) == 1
    monkeypatch.setattr(query_processor, "SLICE_S", 1.0)
    await answered(queries, 2)
    assert [len(decode_records(answer.body)) for answer in queries.answers] == [5, 5]


async def test_a_query_that_takes_for_ever_is_refused_with_the_reason(
    desk: Desk, in_tiny_slices: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_processor, "MAX_SLICES", 3)
    put(desk)
    wire = Wire()
    desk.request(wire, RequestCode.QUERY_MESSAGE, QUERY)
    await answered(wire, 1)
    assert (wire.answers[0].code, wire.answers[0].remark) == (
        ResponseCode.SYSTEM_ERROR,
        "query timed out: too many messages have keys with the same hash; use a shorter time range",
    )


async def test_only_so_many_queries_that_take_long_wait_for_their_turn(
    desk: Desk, in_tiny_slices: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_processor, "MAX_LONG_QUERIES", 2)
    monkeypatch.setattr(query_processor, "MAX_SLICES", 1)
    wire = Wire()
    for _ in range(3):
        desk.request(wire, RequestCode.QUERY_MESSAGE, QUERY)
    assert [answer.code for answer in wire.answers] == [ResponseCode.SYSTEM_BUSY]
    await answered(wire, 3)
    desk.request(wire, RequestCode.QUERY_MESSAGE, QUERY)
    assert len(wire.answers) == 3


async def test_one_client_has_a_share_of_the_queries_that_take_long(
    desk: Desk, in_tiny_slices: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_processor, "MAX_SLICES", 1)
    greedy, other = Wire("127.0.0.1:1"), Wire("127.0.0.1:2")
    for _ in range(17):
        desk.request(greedy, RequestCode.QUERY_MESSAGE, QUERY)
    assert [answer.code for answer in greedy.answers] == [ResponseCode.SYSTEM_BUSY]
    desk.request(other, RequestCode.QUERY_MESSAGE, QUERY)
    await answered(greedy, 17)
    await answered(other, 1)
    assert [answer.code for answer in other.answers] == [ResponseCode.SYSTEM_ERROR]
