import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.message import properties as props
from rocketmq_broker.message.errors import CorruptRecord
from rocketmq_broker.message.record import decode_record, encode_record, to_message
from rocketmq_broker.message.tags import tags_code
from rocketmq_broker.transaction.checking.check_message import check_message
from rocketmq_broker.transaction.copies import first_offsets, identity_of, origin_of
from rocketmq_broker.transaction.errors import DelayedTransaction, NotAHalfMessage
from rocketmq_broker.transaction.messages.half_message import read_any_message, read_half_message
from rocketmq_broker.transaction.transitions import committed, discarded, half_properties, put_back, resumed
from tests.unit.transaction.records import (
    GROUP,
    HOST,
    PRODUCER_HOST,
    changed,
    half_inner,
    half_record,
    sent_properties,
    stored,
    transaction,
)


def test_a_half_message_says_where_its_message_belongs_and_keeps_what_it_said() -> None:
    encoded = half_properties(sent_properties(KEYS="order-1"), b"orders", 3, GROUP)

    assert props.decode(encoded) == {**props.decode(sent_properties(KEYS="order-1")), "REAL_TOPIC": "orders", "REAL_QID": "3"}


def test_a_destination_that_the_producer_claims_is_overruled() -> None:
    claimed = props.encode({"REAL_TOPIC": "TBW102", "REAL_QID": "99", "PGROUP": GROUP})

    encoded = half_properties(claimed, b"orders", 3, GROUP)

    assert props.decode(encoded) == {"PGROUP": GROUP, "REAL_TOPIC": "orders", "REAL_QID": "3"}


def test_a_message_without_its_producer_group_gets_that_of_the_request() -> None:
    assert props.find(half_properties(b"TRAN_MSG\x01true", b"orders", 0, "group"), props.PRODUCER_GROUP) == "group"


@pytest.mark.parametrize("level", ["1", "18"])
def test_a_delayed_transaction_is_refused(level: str) -> None:
    with pytest.raises(DelayedTransaction, match="cannot be delayed"):
        half_properties(sent_properties(DELAY=level), b"orders", 3, GROUP)


@pytest.mark.parametrize("level", ["0", "soon", ""])
def test_a_delay_level_that_delays_nothing_is_borne(level: str) -> None:
    assert props.find(half_properties(sent_properties(DELAY=level), b"orders", 3, GROUP), props.REAL_TOPIC) == "orders"


@pytest.mark.parametrize("sys_flag", [4, 8, 12, 0])
def test_the_half_message_is_stored_without_a_transaction_type_so_that_its_queue_shows_it(sys_flag: int) -> None:
    assert half_inner(sys_flag=sys_flag | 1).sys_flag == 1


def test_the_committed_message_is_the_message_that_was_sent() -> None:
    data = half_record(100, 5, sys_flag=5, transaction_id="ID1")
    half = read_half_message(data)

    draft = committed(half, transaction(100))

    message = to_message(
        decode_record(stored(changed(draft, sys_flag=draft.sys_flag & ~1), commit_log_offset=500, queue_offset=9))
    )
    assert (message.topic, message.queue_id, message.body, message.flag) == ("orders", 3, b"order 1", 7)
    assert draft.sys_flag == 8 | 1
    assert message.prepared_transaction_offset == 100
    assert message.born_timestamp == 1000
    assert message.properties == props.decode(half.properties)
    assert message.transaction_id == "ID1"
    assert draft.born_host == PRODUCER_HOST
    assert draft.body_crc == half.body_crc
    assert draft.tags_code == tags_code("created")


def test_the_committed_message_says_how_often_it_was_checked() -> None:
    half = read_half_message(half_record())

    draft = committed(half, transaction(100, checks=2))

    assert props.find(draft.properties, props.TRANSACTION_CHECK_TIMES) == "2"


def test_check_times_that_do_not_fit_do_not_keep_a_message_from_being_committed() -> None:
    begun = half_inner().properties
    full = changed(half_inner(), properties=begun + b"\x02FILL\x01" + b"x" * (32767 - len(begun) - 6))

    draft = committed(full, transaction(100, checks=2))

    assert draft.properties == full.properties


def test_the_check_back_message_is_numbered_and_refers_to_the_first_half_message() -> None:
    half = read_half_message(half_record(700, 70))

    record = decode_record(check_message(half, transaction(100, 5, checks=1), 2))

    assert (record.topic, record.queue_id, record.queue_offset, record.commit_log_offset) == (b"orders", 3, 5, 100)
    assert record.get_property(props.TRANSACTION_CHECK_TIMES) == "2"
    assert record.body == b"order 1"
    assert record.is_intact
    assert (record.born_host, record.store_host) == (PRODUCER_HOST, HOST)


@pytest.mark.parametrize(
    "properties",
    [
        {"REAL_TOPIC": "orders"},
        {"REAL_QID": "3"},
        {"REAL_TOPIC": "orders", "REAL_QID": "three"},
        {"REAL_TOPIC": "o", "REAL_QID": "-1"},
    ],
)
def test_a_half_message_without_a_destination_cannot_be_checked(properties: dict[str, str]) -> None:
    poisoned = changed(half_inner(), properties=props.encode({**properties, "PGROUP": GROUP}))
    half = read_half_message(stored(poisoned, commit_log_offset=100, queue_offset=0))

    with pytest.raises(NotAHalfMessage, match="has no valid destination"):
        check_message(half, transaction(), 1)


def test_a_discarded_message_keeps_its_origin_and_the_number_of_checks() -> None:
    draft = discarded(read_half_message(half_record()), transaction(100, checks=15))

    kept = props.decode(draft.properties)
    assert (draft.topic, draft.queue_id) == (b"TRANS_CHECK_MAX_TIME_TOPIC", 0)
    assert (kept["REAL_TOPIC"], kept["REAL_QID"], kept["PGROUP"], kept["TRANSACTION_CHECK_TIMES"]) == ("orders", "3", GROUP, "15")


def test_a_copy_that_is_put_back_names_the_first_half_message() -> None:
    draft = put_back(read_half_message(half_record(700, 70)), transaction(100, 5), 2)

    copy = read_half_message(stored(draft, commit_log_offset=900, queue_offset=90))
    assert (first_offsets(copy), copy.check_times) == ((100, 5), 2)
    assert identity_of(copy) == ("ID1", GROUP, 1000, PRODUCER_HOST, None)


def test_a_copy_that_is_put_back_can_name_a_half_message_at_offset_0() -> None:
    draft = put_back(read_half_message(half_record(0, 0)), transaction(0, 0), 0)

    assert first_offsets(read_half_message(stored(draft, commit_log_offset=900, queue_offset=90))) == (0, 0)


def test_a_resumed_message_is_a_new_half_message_not_checked_yet() -> None:
    half = read_half_message(half_record())
    gone = read_half_message(stored(discarded(half, transaction(100, checks=15)), commit_log_offset=900, queue_offset=0))

    again = read_half_message(stored(resumed(gone), commit_log_offset=1900, queue_offset=8))

    assert (again.topic, again.check_times, first_offsets(again)) == (b"RMQ_SYS_TRANS_HALF_TOPIC", 0, None)
    assert again.destination() == (b"orders", 3)
    assert again.resumed_from == "900"
    assert origin_of(again) == origin_of(half)
    assert identity_of(again) != identity_of(half)


def test_a_message_of_another_topic_is_no_half_message() -> None:
    data = stored(changed(half_inner(), topic=b"orders"), commit_log_offset=0, queue_offset=0)

    with pytest.raises(NotAHalfMessage, match="is not a half message: topic orders"):
        read_half_message(data)


@given(body=st.binary(max_size=40), encoded=st.binary(max_size=60), flag=st.integers(0, 0x7FFF), is_v6=st.booleans())
def test_a_half_message_reads_as_its_record_does(body: bytes, encoded: bytes, flag: int, is_v6: bool) -> None:
    data = encode_record(
        topic=b"RMQ_SYS_TRANS_HALF_TOPIC",
        queue_id=0,
        queue_offset=5,
        commit_log_offset=77,
        flag=flag,
        sys_flag=0x30 if is_v6 else 0,
        born_timestamp=1,
        born_host=bytes(20) if is_v6 else PRODUCER_HOST,
        store_timestamp=2,
        store_host=bytes(20) if is_v6 else HOST,
        reconsume_times=3,
        prepared_transaction_offset=4,
        body=body,
        properties=encoded,
    )

    half, record = read_half_message(data), decode_record(data)

    for name in sorted({name for name in dir(half) if not name.startswith("_")} & set(record.__dataclass_fields__)):
        assert getattr(half, name) == getattr(record, name), name


@given(position=st.integers(0, 200), value=st.integers(0, 255), cut=st.integers(0, 250))
def test_a_damaged_record_is_told_apart_or_read_without_surprise(position: int, value: int, cut: int) -> None:
    data = bytearray(half_record())
    data[position % len(data)] = value

    with contextlib.suppress(CorruptRecord):
        read_any_message(bytes(data[: max(cut, 1)]))


@pytest.mark.parametrize(
    ("topic", "queue_id"),
    [
        ("SCHEDULE_TOPIC_XXXX", "0"),
        ("RMQ_SYS_TRANS_HALF_TOPIC", "0"),
        ("RMQ_SYS_TRANS_OP_HALF_TOPIC", "0"),
        ("TRANS_CHECK_MAX_TIME_TOPIC", "0"),
        ("%RETRY%credit_service", "0"),
        ("%DLQ%credit_service", "0"),
        ("no topic", "0"),
        ("t" * 128, "0"),
        ("orders", "65535"),
        ("orders", "-1"),
        ("orders", "first"),
    ],
)
def test_a_half_message_cannot_be_for_what_no_producer_sends_to(topic: str, queue_id: str) -> None:
    draft = half_inner()
    forged = props.put(props.put(draft.properties, props.REAL_TOPIC, topic), props.REAL_QUEUE_ID, queue_id)
    half = read_half_message(stored(changed(draft, properties=forged), commit_log_offset=100, queue_offset=0))
    with pytest.raises(NotAHalfMessage):
        half.destination()


def test_a_half_message_can_be_for_the_topic_of_apaches_benchmark() -> None:
    encoded = half_properties(sent_properties(), b"BenchmarkTest", 1023, GROUP)
    half = read_half_message(stored(changed(half_inner(), properties=encoded), commit_log_offset=100, queue_offset=0))
    assert half.destination() == (b"BenchmarkTest", 1023)
