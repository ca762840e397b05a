"""Maps keyed by message queue are read back unchanged, whatever the topic's name."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.message import MessageQueue
from rocketmq_broker.message.text import fastjson
from rocketmq_broker.message.text.fastjson import standard_json
from rocketmq_broker.protocol import BodyError
from rocketmq_broker.protocol.bodies.group import ConsumeStats, OffsetWrapper, ResetOffsetBody
from rocketmq_broker.protocol.queue_table import MessageQueueData, QueueTable

names = st.text(st.characters(codec="utf-8"), max_size=20)
queues = st.builds(MessageQueue, topic=names, broker_name=names, queue_id=st.integers(0, 2**31 - 1))


@given(st.dictionaries(queues, st.integers(-(2**63), 2**63 - 1), max_size=4))
def test_a_table_of_offsets_comes_back_as_it_went(offsets: dict[MessageQueue, int]) -> None:
    body = ResetOffsetBody(offset_table=QueueTable(offsets))
    assert ResetOffsetBody.decode(body.encode()) == body


@given(st.dictionaries(queues, st.builds(OffsetWrapper, st.integers(0, 99), st.integers(0, 99)), max_size=4))
def test_a_table_of_objects_comes_back_as_it_went(progress: dict[MessageQueue, OffsetWrapper]) -> None:
    body = ConsumeStats(offset_table=QueueTable(progress))
    assert ConsumeStats.decode(body.encode()) == body


@given(queues)
def test_a_queue_comes_back_as_it_went(queue: MessageQueue) -> None:
    data = MessageQueueData.of(queue)
    assert data.to_queue() == queue
    assert msgspec.json.decode(msgspec.json.encode(data), type=MessageQueueData) == data


def test_a_queue_has_the_members_of_javas_in_their_order() -> None:
    data = MessageQueueData.of(MessageQueue("orders", "broker-a", 3))
    assert msgspec.json.encode(data) == b'{"brokerName":"broker-a","queueId":3,"topic":"orders"}'


@pytest.mark.parametrize(
    "key", [b"{}", b'{"topic":"t"}', b'{"topic":1,"brokerName":"b","queueId":0}', b'{"topic":"t","brokerName":"b","queueId":"x"}']
)
def test_a_key_that_is_no_queue_is_refused(key: bytes) -> None:
    with pytest.raises(BodyError, match="invalid ResetOffsetBody body"):
        ResetOffsetBody.decode(b'{"offsetTable":{%b:7}}' % key)


def test_a_key_may_come_as_a_string_that_holds_the_object() -> None:
    key = msgspec.json.encode('{"topic":"t","brokerName":"b","queueId":1}')
    table = ResetOffsetBody.decode(b'{"offsetTable":{%b:7}}' % key).offset_table
    assert dict(table) == {MessageQueue("t", "b", 1): 7}


@given(st.dictionaries(st.integers(-(2**31), 2**31), names, max_size=4))
def test_maps_from_numbers_are_read_by_the_reader_of_fastjson(entries: dict[int, str]) -> None:
    written = bytes(fastjson.number_keyed(entries))
    assert msgspec.json.decode(standard_json(written)) == {str(key): value for key, value in entries.items()}


@given(st.lists(st.tuples(st.dictionaries(names, names, max_size=2), names), max_size=3))
def test_maps_from_objects_are_read_by_the_reader_of_fastjson(entries: list[tuple[dict[str, str], str]]) -> None:
    written = bytes(fastjson.object_keyed(entries))
    read = msgspec.json.decode(standard_json(written))
    assert read == {msgspec.json.encode(key).decode(): value for key, value in entries}
