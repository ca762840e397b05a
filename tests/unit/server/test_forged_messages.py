"""Data that only a broker may write into a message is refused or removed if a client sends it, with any request."""

import msgspec
import pytest

from rocketmq_broker.message import properties, sysflag
from rocketmq_broker.message.record import decode_record
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.headers.send import SendMessageRequestHeader, SendMessageRequestHeaderV2
from rocketmq_broker.server.sending.sent_properties import BROKERS_OWN, without_brokers_own
from tests.unit.server.conftest import START_MS, Desk, Wire
from tests.unit.server.hostile_wire import batch

TOPICS = ("orders", "%RETRY%g", "SCHEDULE_TOPIC_XXXX", "%DLQ%g")
FORGED = "\x02".join(f"{name}\x01{value}" for name in BROKERS_OWN for value in ("7", "8"))
DECIDED = [sysflag.TRANSACTION_COMMIT_TYPE, sysflag.TRANSACTION_ROLLBACK_TYPE]


def header(**changes: object) -> SendMessageRequestHeaderV2:
    plain = SendMessageRequestHeaderV2(
        producer_group="p", topic="orders", default_topic="TBW102", default_topic_queue_nums=4, queue_id=0, sys_flag=0,
        born_timestamp=START_MS, flag=0, properties="UNIQ_KEY\x01id",
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def with_long_names(short: SendMessageRequestHeaderV2) -> SendMessageRequestHeader:
    return SendMessageRequestHeader(**{name: getattr(short, name) for name in short.__struct_fields__})


def ways(sent: SendMessageRequestHeaderV2) -> list[tuple[RequestCode, CommandHeader, bytes]]:
    """Returns the requests with which a client can have the message stored."""
    as_batch = msgspec.structs.replace(sent, batch=True)
    return [
        (RequestCode.SEND_MESSAGE_V2, sent, b"body"),
        (RequestCode.SEND_MESSAGE, with_long_names(sent), b"body"),
        (RequestCode.SEND_BATCH_MESSAGE, as_batch, batch(sent.properties, b"body")),
        (RequestCode.SEND_MESSAGE, with_long_names(as_batch), batch(sent.properties, b"body")),
    ]


def stored(desk: Desk) -> list[dict[str, str]]:
    return [
        properties.decode(record.properties)
        for topic in TOPICS
        for queue_id in range(4)
        for record in desk.messages(topic, queue_id)
    ]


@pytest.mark.parametrize("decided", DECIDED)
@pytest.mark.parametrize("way", range(4))
@pytest.mark.parametrize("oneway", [False, True])
def test_a_client_cannot_say_that_a_message_was_decided(desk: Desk, decided: int, way: int, oneway: bool) -> None:
    code, sent, body = ways(header(sys_flag=decided))[way]
    wire = Wire()
    desk.request(wire, code, sent, body, oneway=oneway)
    assert [answer.code for answer in wire.answers] == ([] if oneway else [ResponseCode.MESSAGE_ILLEGAL])
    assert stored(desk) == []


@pytest.mark.parametrize("decided", DECIDED)
def test_a_message_that_begins_a_transaction_cannot_be_decided_already(desk: Desk, decided: int) -> None:
    sent = header(sys_flag=decided, properties="TRAN_MSG\x01true\x02PGROUP\x01p\x02UNIQ_KEY\x01id")
    assert desk.ask(RequestCode.SEND_MESSAGE_V2, sent, b"body").code == ResponseCode.MESSAGE_ILLEGAL
    assert desk.half_messages.begun == []


def test_a_message_that_is_part_of_a_batch_begins_no_transaction(desk: Desk) -> None:
    code, sent, body = ways(header(sys_flag=sysflag.TRANSACTION_PREPARED_TYPE))[2]
    assert desk.ask(code, sent, body).code == ResponseCode.MESSAGE_ILLEGAL
    assert stored(desk) == []


@pytest.mark.parametrize("way", range(4))
def test_of_the_sys_flag_only_what_a_client_may_say_is_stored(desk: Desk, way: int) -> None:
    brokers_own = 0x7FFFF8FE & ~sysflag.TRANSACTION_MASK
    code, sent, body = ways(header(sys_flag=sysflag.COMPRESSED | sysflag.COMPRESSION_ZLIB | brokers_own))[way]
    assert desk.ask(code, sent, body).code == ResponseCode.SUCCESS
    (record,) = desk.messages("orders")
    assert record.sys_flag == sysflag.COMPRESSED | sysflag.COMPRESSION_ZLIB
    assert decode_record(record.encode()) == record


def test_a_failed_message_that_an_old_consumer_sends_by_itself_is_tried_again(desk: Desk) -> None:
    """A failed message that a consumer with an old client resends itself is stored and redelivered as a plain message.

    Java clients before 4.6.1 leave TRAN_MSG in the message and set the transaction bits of the sysFlag accordingly.
    """
    encoded = "TRAN_MSG\x01true\x02PGROUP\x01p\x02REAL_TOPIC\x01orders\x02REAL_QID\x017\x02DELAY\x013\x02RETRY_TOPIC\x01orders"
    sent = header(topic="%RETRY%g", properties=encoded, sys_flag=sysflag.TRANSACTION_PREPARED_TYPE, reconsume_times=1)
    assert desk.ask(RequestCode.SEND_MESSAGE_V2, sent, b"body").code == ResponseCode.SUCCESS
    desk.deliver_due(10_000)
    (record,) = desk.messages("%RETRY%g")
    assert (record.sys_flag, record.get_property("RETRY_TOPIC")) == (0, "orders")


@pytest.mark.parametrize("way", range(4))
@pytest.mark.parametrize(
    "encoded", [FORGED, f"{FORGED}\x02UNIQ_KEY\x01id", f"UNIQ_KEY\x01id\x02{FORGED}\x02", f"A\x01\x02{FORGED}"]
)
def test_properties_that_only_a_broker_writes_are_not_stored(desk: Desk, way: int, encoded: str) -> None:
    code, sent, body = ways(header(properties=encoded))[way]
    assert desk.ask(code, sent, body).code == ResponseCode.SUCCESS
    (found,) = stored(desk)
    assert not set(BROKERS_OWN) & found.keys()
    assert b"REAL_" not in desk.messages("orders")[0].properties


@pytest.mark.parametrize("name", BROKERS_OWN)
def test_each_property_that_only_a_broker_writes_is_recognised_by_itself(name: str) -> None:
    assert without_brokers_own(f"A\x011\x02{name}\x01forged\x02B\x012".encode()) == b"A\x011\x02B\x012"


def test_what_a_half_message_is_made_of_holds_nothing_that_only_a_broker_writes(desk: Desk) -> None:
    sent = header(properties=f"TRAN_MSG\x01true\x02{FORGED}\x02PGROUP\x01p", sys_flag=sysflag.TRANSACTION_PREPARED_TYPE)
    desk.ask(RequestCode.SEND_MESSAGE_V2, sent, b"body")
    (begun,) = desk.half_messages.begun
    assert properties.decode(begun.properties) == {"TRAN_MSG": "true", "PGROUP": "p", "CLUSTER": "DefaultCluster"}


def test_a_delayed_message_goes_where_its_sender_may_send_it(desk: Desk) -> None:
    forged = "REAL_TOPIC\x01SCHEDULE_TOPIC_XXXX\x02REAL_TOPIC\x01RMQ_SYS_TRANS_OP_HALF_TOPIC\x02REAL_QID\x010\x02REAL_QID\x019"
    desk.ask(RequestCode.SEND_MESSAGE_V2, header(properties=f"{forged}\x02DELAY\x011"), b"body")
    desk.deliver_due(1000)
    assert [record.body for record in desk.messages("orders")] == [b"body"]
