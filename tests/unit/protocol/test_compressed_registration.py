"""Compressed registrations are read in steps and within limits, and every truncation is reported."""

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.message.steps import finish
from rocketmq_broker.protocol import BodyError
from rocketmq_broker.protocol.bodies.register_broker import RegisterBrokerBody
from rocketmq_broker.protocol.bodies.topic import DataVersion, TopicConfigSerializeWrapper

names = st.text(st.characters(categories=("L", "N"), include_characters="%-_"), min_size=1, max_size=20)


def body_with(topics: dict[str, TopicConfig], filter_servers: list[str] | None = None) -> RegisterBrokerBody:
    wrapper = TopicConfigSerializeWrapper(topic_config_table=topics, data_version=DataVersion(timestamp=5, counter=7))
    return RegisterBrokerBody(topic_config_serialize_wrapper=wrapper, filter_server_list=filter_servers or [])


def inflated(body: RegisterBrokerBody) -> bytes:
    return zlib.decompress(body.encode_compressed())


def read(data: bytes, **bounds: int) -> RegisterBrokerBody:
    return finish(RegisterBrokerBody.read_compressed(zlib.compress(data), **bounds))


@given(
    topics=st.dictionaries(names, st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 7)), max_size=5),
    filter_servers=st.lists(names, max_size=2),
)
def test_a_registration_comes_back_as_it_went(topics: dict[str, tuple[int, int, int]], filter_servers: list[str]) -> None:
    table = {
        name: TopicConfig(name, read_queue_nums=reads, write_queue_nums=writes, perm=perm)
        for name, (reads, writes, perm) in topics.items()
    }
    body = body_with(table, filter_servers)
    assert finish(RegisterBrokerBody.read_compressed(body.encode_compressed())) == body


@pytest.mark.parametrize(("count", "steps"), [(0, 0), (1, 1), (200, 1), (201, 2), (1000, 5)])
def test_many_topics_are_read_in_steps(count: int, steps: int) -> None:
    body = body_with({f"topic-{number}": TopicConfig(f"topic-{number}") for number in range(count)})
    reading = RegisterBrokerBody.read_compressed(body.encode_compressed())
    assert sum(1 for _ in reading) == steps


def test_more_topics_than_may_be_are_refused_before_they_are_read() -> None:
    data = inflated(body_with({name: TopicConfig(name) for name in ("a", "b", "c")}))
    assert len(read(data, max_topics=3).topic_config_serialize_wrapper.topic_config_table) == 3
    with pytest.raises(BodyError, match="too many topics in a compressed registration: 3, at most 2"):
        read(data, max_topics=2)


def test_every_tear_is_told() -> None:
    data = inflated(body_with({"orders": TopicConfig("orders")}, ["filter"]))
    for end in range(len(data)):
        with pytest.raises(BodyError):
            read(data[:end])


@pytest.mark.parametrize("length", [-1, -(2**31), 2**31 - 1])
def test_a_part_of_an_impossible_length_is_named(length: int) -> None:
    with pytest.raises(BodyError, match=f"invalid length in a compressed registration: {length}, at most 0"):
        read(struct.pack(">i", length))


@pytest.mark.parametrize("text", ["orders", "orders 4 4 6", "orders 4 four 6 SINGLE_TAG", "orders  4 4 6"])
def test_a_topic_that_makes_no_sense_is_quoted(text: str) -> None:
    whole = inflated(body_with({"orders": TopicConfig("orders")}))
    topic = b"orders 16 16 6 SINGLE_TAG"
    damaged = whole.replace(struct.pack(">i", len(topic)) + topic, struct.pack(">i", len(text)) + text.encode())
    with pytest.raises(BodyError, match="invalid topic"):
        read(damaged)


def test_a_registration_of_rocketmq_5_is_read() -> None:
    body = body_with({"orders": TopicConfig("orders", read_queue_nums=4, perm=2), "credits": TopicConfig("credits")})
    text = b"orders 4 16 2 SINGLE_TAG"
    longer = text + b' {"message.type":"FIFO"}'
    sized = {each: len(each).to_bytes(4) + each for each in (text, longer)}
    assert sized[text] in inflated(body)
    assert read(inflated(body).replace(sized[text], sized[longer])) == body


def test_compressed_data_that_is_torn_or_inflates_without_end_is_refused() -> None:
    torn = body_with({"orders": TopicConfig("orders")}).encode_compressed()[:-5]
    for data in (torn, zlib.compress(bytes(9 * 1024 * 1024))):
        with pytest.raises(BodyError, match="truncated or too long: at most 8388608 bytes when inflated"):
            finish(RegisterBrokerBody.read_compressed(data))


def test_what_was_never_compressed_says_so() -> None:
    with pytest.raises(BodyError, match="compressed registration cannot be inflated"):
        finish(RegisterBrokerBody.read_compressed(b"{}"))


@given(st.binary(max_size=60))
def test_no_garbage_is_a_surprise(garbage: bytes) -> None:
    with pytest.raises(BodyError):
        read(garbage + b"\xff")
