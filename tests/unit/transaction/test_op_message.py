import pytest

from rocketmq_broker.message import properties as props
from rocketmq_broker.message.record import decode_record
from rocketmq_broker.transaction.errors import NotAnOpMessage
from rocketmq_broker.transaction.messages.half_message import read_any_message
from rocketmq_broker.transaction.messages.op_message import decided_offsets, op_message
from rocketmq_broker.transaction.states import State
from tests.unit.transaction.records import HOST, changed, op_record, stored


def test_an_op_message_names_its_half_message_as_apache_writes_it() -> None:
    record = decode_record(op_record(42))

    assert (record.topic, record.queue_id, record.body) == (b"RMQ_SYS_TRANS_OP_HALF_TOPIC", 0, b"42")
    assert record.get_property(props.TAGS) == "d"
    assert record.is_intact
    assert decided_offsets(read_any_message(record.encode())) == [42]


def _op(body: bytes, tag: str = "d") -> bytes:
    draft = changed(op_message(0, 0, HOST, None, None), body=body, properties=props.encode({"TAGS": tag}))
    return stored(draft, commit_log_offset=0, queue_offset=0)


@pytest.mark.parametrize(("body", "offsets"), [(b"3,1,2", [3, 1, 2]), (b"3,1,2,", [3, 1, 2]), (b"7", [7])])
def test_op_messages_of_rocketmq_5_name_several_half_messages(body: bytes, offsets: list[int]) -> None:
    assert decided_offsets(read_any_message(_op(body))) == offsets


@pytest.mark.parametrize("data", [_op(b""), _op(b"-1"), _op(b"x"), _op(b"\xff"), _op(b"1", tag="e")])
def test_an_op_message_that_names_none_is_said_so(data: bytes) -> None:
    with pytest.raises(NotAnOpMessage):
        decided_offsets(read_any_message(data))


def test_the_reason_of_a_decision_by_hand_is_kept() -> None:
    draft = op_message(42, 0, HOST, State.ROLLED_BACK, "customer called, order 1 was cancelled")

    assert props.find(draft.properties, "REASON") == "customer called, order 1 was cancelled"
    assert props.find(draft.properties, props.TAGS) == "d"
