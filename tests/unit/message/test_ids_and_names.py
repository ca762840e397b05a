"""Tests message ids, tags, topics and groups."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.message import IllegalMessage, Message, MessageQueue, properties, topics
from rocketmq_broker.message.ids import UniqueIdMaker, offset_message_id, parse_offset_message_id
from rocketmq_broker.message.record import host_bytes
from rocketmq_broker.message.tags import java_hash_code, tags_code
from rocketmq_broker.world import World


@given(st.ip_addresses(v=4).map(str), st.integers(0, 65535), st.integers(0, 2**63 - 1))
def test_an_offset_message_id_says_where_a_message_is(host: str, port: int, offset: int) -> None:
    text = offset_message_id(host_bytes(host, port), offset)
    assert len(text) == 32
    assert parse_offset_message_id(text) == (host, port, offset)


@pytest.mark.parametrize("text", ["", "7F", "zz" * 16, "7F000001" * 5])
def test_what_is_no_offset_message_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="offset message id must be 32 hexadecimal digits"):
        parse_offset_message_id(text)


def test_ids_are_unique_across_threads_and_makers() -> None:
    made: list[str] = []
    makers = [UniqueIdMaker(World()), UniqueIdMaker(World())]

    def make(maker: UniqueIdMaker) -> None:
        made.extend([maker.make(1_700_000_000_000) for _ in range(5000)])

    threads = [threading.Thread(target=make, args=(maker,)) for maker in makers for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 20_000
    assert all(len(each) == 32 and each == each.upper() for each in made)


def test_ids_stay_unique_when_the_same_milliseconds_of_another_month_come() -> None:
    maker = UniqueIdMaker(World())
    november_ms, december_ms = 1_698_796_800_000, 1_701_388_800_000
    november = {maker.make(november_ms + 5) for _ in range(0x10000)}
    assert maker.make(december_ms + 5) not in november


def test_ids_stay_unique_when_the_clock_is_set_back() -> None:
    maker = UniqueIdMaker(World())
    before = {maker.make(1_700_000_000_000) for _ in range(0x10000)}
    maker.make(1_700_000_001_000)
    assert before.isdisjoint({maker.make(1_700_000_000_000) for _ in range(3)})


def test_ids_stay_unique_in_a_forked_process() -> None:
    """Ids of a forked process have another prefix, because the child inherits the parent's counter."""
    process_id = 4711
    maker = UniqueIdMaker(World(process_id=lambda: process_id))
    parent = {maker.make(1_700_000_000_000)[:20] for _ in range(2)}
    process_id += 0x10000  # the id holds 16 bits of it
    child = {maker.make(1_700_000_000_000)[:20] for _ in range(2)}
    assert (len(parent), len(child), len(parent | child)) == (1, 1, 2)


@pytest.mark.parametrize(("text", "code"), [("", 0), ("a", 97), ("TagA", 2598919), ("hello", 99162322), ("\U0001f600", 1772899)])
def test_the_hash_of_a_tag_is_javas(text: str, code: int) -> None:
    assert java_hash_code(text) == code


def test_the_hash_overflows_as_javas_does() -> None:
    assert java_hash_code("polygenelubricants") == -(2**31)
    assert tags_code(None) == tags_code("") == 0


@pytest.mark.parametrize("topic", ["orders", "%RETRY%group", "a_b-C|9", "x" * 127])
def test_legal_topics_pass(topic: str) -> None:
    topics.validate_topic(topic)


@pytest.mark.parametrize(
    ("topic", "words"),
    [("", "blank"), ("  ", "blank"), ("a b", "illegal"), ("tïp", "illegal"), ("x" * 128, "longer"), ("a\n", "illegal")],
)
def test_illegal_topics_are_refused(topic: str, words: str) -> None:
    with pytest.raises(IllegalMessage, match=words):
        topics.validate_topic(topic)


@pytest.mark.parametrize(("group", "words"), [("", "blank"), ("a.b", "illegal"), ("x" * 256, "longer")])
def test_illegal_groups_are_refused(group: str, words: str) -> None:
    topics.validate_group("group")
    with pytest.raises(IllegalMessage, match=words):
        topics.validate_group(group)


def test_a_consumer_group_leaves_room_for_its_retry_topic() -> None:
    topics.validate_consumer_group("g" * 120)
    topics.validate_topic(topics.retry_topic("g" * 120))
    with pytest.raises(IllegalMessage, match="too long: 121 characters, at most 120"):
        topics.validate_consumer_group("g" * 121)


@pytest.mark.parametrize("group", ["", "a.b", "x" * 256, "x" * 100_000])
def test_what_is_no_group_is_known(group: str) -> None:
    assert topics.is_group("x" * 255)
    assert not topics.is_group(group)


@pytest.mark.parametrize("topic", ["orders", "TBW102", "BenchmarkTest"])
def test_transactions_are_for_topics_that_producers_send_to(topic: str) -> None:
    assert topics.takes_transactions(topic)


@pytest.mark.parametrize("topic", [*sorted(topics.NOT_ALLOWED_SEND_TOPICS), "%RETRY%g", "%DLQ%g", "", "a b", "x" * 128])
def test_transactions_are_for_no_other_topics(topic: str) -> None:
    assert not topics.takes_transactions(topic)
    assert topics.takes_sent_messages(topic) is topic.startswith("%")


def test_system_topics_are_known() -> None:
    assert topics.is_system_topic(topics.HALF_TOPIC)
    assert topics.is_system_topic("rmq_sys_anything")
    assert not topics.is_system_topic("orders")
    assert all(map(topics.is_system_topic, topics.NOT_ALLOWED_SEND_TOPICS))
    assert topics.retry_topic("g") == "%RETRY%g"
    assert topics.dead_letter_topic("g") == "%DLQ%g"


def test_a_message_keeps_tag_keys_and_delay_among_its_properties() -> None:
    message = Message.of("orders", b"b", tags="t", keys=["k1", "k2"], delay_time_level=3, user_properties={"u": "v"})
    assert message.properties == {"u": "v", properties.TAGS: "t", properties.KEYS: "k1 k2", properties.DELAY_TIME_LEVEL: "3"}
    assert (message.tags, message.keys, message.transaction_id) == ("t", ("k1", "k2"), None)
    assert (message.delay_time_level, Message.of("orders", b"").delay_time_level) == (3, 0)
    assert message.with_properties({properties.UNIQUE_KEY: "id"}).transaction_id == "id"
    assert Message.of("orders", b"").properties == {}


def test_queues_are_ordered_by_topic_broker_and_number() -> None:
    queues = [MessageQueue("b", "a", 0), MessageQueue("a", "b", 0), MessageQueue("a", "a", 2), MessageQueue("a", "a", 1)]
    assert sorted(queues) == queues[::-1]
