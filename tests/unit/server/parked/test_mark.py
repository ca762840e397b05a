import pytest

from rocketmq_broker.message.record import encode_record, host_bytes
from rocketmq_broker.server.parked.mark import MARK_TOPIC, NotAMark, ParkedPlace, Treatment, mark_body, mark_properties, read_mark

PLACE = ParkedPlace(b"%DLQ%credits", 0, 17, 4711)


def record(body: bytes, encoded_properties: bytes) -> bytes:
    return encode_record(
        topic=MARK_TOPIC,
        queue_id=0,
        queue_offset=3,
        commit_log_offset=9000,
        flag=0,
        sys_flag=0,
        born_timestamp=1000,
        born_host=host_bytes("10.0.0.9", 5555),
        store_timestamp=1001,
        store_host=host_bytes("127.0.0.1", 10911),
        reconsume_times=0,
        prepared_transaction_offset=0,
        body=body,
        properties=encoded_properties,
    )


def test_a_mark_says_what_was_done_to_which_message_by_whom_when_and_why() -> None:
    encoded = mark_properties(Treatment.RETRIED, reason="the customer called", retries=2, previous=1)

    mark = read_mark(record(mark_body(PLACE), encoded))

    assert (mark.place, mark.treatment, mark.reason, mark.retries) == (PLACE, Treatment.RETRIED, "the customer called", 2)
    assert (mark.previous, mark.queue_offset, mark.at_ms, mark.by) == (1, 3, 1001, "10.0.0.9:5555")


def test_a_first_mark_without_a_reason_has_neither() -> None:
    mark = read_mark(record(mark_body(PLACE), mark_properties(Treatment.RESUMED, reason="", retries=0, previous=None)))

    assert (mark.reason, mark.previous, mark.retries) == ("", None, 0)


@pytest.mark.parametrize("body", [b"", b"topic", b"topic 0 17", b"topic 0 17 x", b"topic 0 17 4711 5"])
def test_a_record_that_names_no_message_is_no_mark(body: bytes) -> None:
    with pytest.raises(NotAMark, match="9000"):
        read_mark(record(body, mark_properties(Treatment.RETRIED, reason="", retries=1, previous=None)))


def test_a_record_with_an_unknown_treatment_is_no_mark() -> None:
    with pytest.raises(NotAMark, match="forgotten"):
        read_mark(record(mark_body(PLACE), b"TAGS\x01forgotten"))
