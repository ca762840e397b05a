"""Tests request-reply: the push to the requester, the stored message, and the response to the replier."""

import asyncio
from collections.abc import AsyncIterator, Callable
from random import Random

import msgspec
import pytest

from rocketmq_broker.message import properties, sysflag
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode, SerializeType
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.headers.send import (
    ReplyMessageRequestHeader,
    SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
    SendMessageResponseHeader,
)
from rocketmq_broker.remoting.errors import ConnectionClosed, RemotingTimeout
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.server.sending import reply_processor
from rocketmq_broker.server.sending.reply_processor import ReplyProcessor
from rocketmq_broker.server.sending.send_processor import SendDestination
from rocketmq_broker.store import StoreUnwritable
from tests.e2e.clients import SEND
from tests.unit.server.conftest import IDENTITY, START_MS, Desk, Wire

REPLY_TOPIC = "DefaultCluster_REPLY_TOPIC"
REQUESTER = "client@10.0.0.1:1111"
PROPERTIES = {"MSG_TYPE": "reply", "CORRELATION_ID": "c-1", "REPLY_TO_CLIENT": REQUESTER, "TTL": "3000", "WAIT": "true"}
V2 = msgspec.structs.replace(
    SEND,
    producer_group="repliers",
    topic=REPLY_TOPIC,
    sys_flag=sysflag.COMPRESSED,
    born_timestamp=START_MS - 5,
    flag=7,
    properties=properties.encode(PROPERTIES).decode(),
)


def v2(**changes: object) -> SendMessageRequestHeaderV2:
    return msgspec.structs.replace(V2, **changes)


class Replies:
    """A broker that accepts replies, a requester that waits for one, and a replier."""

    def __init__(self, desk: Desk, tasks: Tasks, *, is_storing: bool = True) -> None:
        self.desk = desk
        processor = ReplyProcessor(
            identity=IDENTITY,
            store=desk.store,
            group_commit=desk.commit,
            destination=SendDestination(desk.topics, desk.groups, Random(1)),
            producers=desk.producers,
            region_id="DefaultRegion",
            is_trace_on=True,
            is_storing=is_storing,
            statistics=desk.statistics,
            tasks=tasks,
            clock=desk.clock,
        )
        desk.dispatcher.add(processor.handlers)
        self.requester = Wire("10.0.0.1:1111")
        desk.heartbeat(self.requester, producers=("requesters",))
        self.replier = Wire("10.0.0.2:2222")

    async def send(
        self, header: SendMessageRequestHeader | SendMessageRequestHeaderV2 = V2, body: bytes = b"hello", **how: object
    ) -> None:
        code = RequestCode.SEND_REPLY_MESSAGE
        if isinstance(header, SendMessageRequestHeaderV2):
            code = RequestCode.SEND_REPLY_MESSAGE_V2
        self.desk.request(self.replier, code, header, body, **how)
        await settled()

    async def requester_answers(self) -> None:
        self.requester.waiting.pop(0).set_result(RemotingCommand(code=ResponseCode.SUCCESS, opaque=1))
        await settled()

    @property
    def answer(self) -> RemotingCommand:
        (answer,) = self.replier.answers
        return answer


async def settled() -> None:
    """Runs the event loop until no task can continue."""
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture
async def tasks() -> AsyncIterator[Tasks]:
    tasks = Tasks()
    yield tasks
    await tasks.stop()


@pytest.fixture
async def replies(desk: Desk, tasks: Tasks) -> Replies:
    return Replies(desk, tasks)


async def test_a_reply_is_pushed_to_the_client_that_its_property_names(replies: Replies) -> None:
    await replies.send()
    ((code, header, body),) = replies.requester.requests
    assert isinstance(header, ReplyMessageRequestHeader)
    assert (code, body) == (RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, b"hello")
    assert properties.decode(header.properties.encode()) == {**PROPERTIES, "PUSH_REPLY_TIME": str(START_MS)}
    expected = ReplyMessageRequestHeader(
        producer_group="repliers",
        topic=REPLY_TOPIC,
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=0,
        sys_flag=sysflag.COMPRESSED,
        born_timestamp=START_MS - 5,
        flag=7,
        properties=header.properties,
        born_host="10.0.0.2:2222",
        store_host="127.0.0.1:10911",
        store_timestamp=START_MS,
    )
    assert header == expected


async def test_who_replied_is_answered_when_the_requester_has_the_reply(replies: Replies) -> None:
    await replies.send()
    assert replies.replier.answers == []
    await replies.requester_answers()
    header = replies.answer.decode_header(SendMessageResponseHeader)
    (record,) = replies.desk.messages(REPLY_TOPIC)
    assert replies.answer.code == ResponseCode.SUCCESS
    assert (header.queue_id, header.queue_offset) == (0, 0)
    assert header.msg_id == (IDENTITY.store_host + record.commit_log_offset.to_bytes(8, "big")).hex().upper()
    assert (header.region_id, header.is_trace_on) == ("DefaultRegion", True)


async def test_a_reply_is_stored_as_it_was_sent(replies: Replies) -> None:
    await replies.send()
    (record,) = replies.desk.messages(REPLY_TOPIC)
    assert (record.body, record.flag, record.sys_flag) == (b"hello", 7, sysflag.COMPRESSED)
    assert (record.born_timestamp, record.store_timestamp) == (START_MS - 5, START_MS)
    assert record.born_host == replies.replier.born_host
    assert properties.decode(record.properties) == PROPERTIES


async def test_long_and_short_names_and_both_serializers_push_and_store_the_same(replies: Replies) -> None:
    long_names = SendMessageRequestHeader(**{name: getattr(V2, name) for name in V2.__struct_fields__})
    for serialize_type in SerializeType:
        for header in (long_names, V2):
            await replies.send(header, serialize_type=serialize_type)
            await replies.requester_answers()
    assert [answer.code for answer in replies.replier.answers] == [ResponseCode.SUCCESS] * 4
    assert [answer.serialize_type for answer in replies.replier.answers] == [SerializeType.JSON] * 2 + [
        SerializeType.ROCKETMQ
    ] * 2
    first, *others = replies.requester.requests
    assert others == [first] * 3
    assert len(replies.desk.messages(REPLY_TOPIC)) == 4


async def test_nothing_is_answered_before_the_reply_is_durable(replies: Replies) -> None:
    replies.desk.commit.is_held_up = True
    await replies.send()
    await replies.requester_answers()
    assert replies.replier.answers == []
    replies.desk.commit.is_held_up = False
    replies.desk.commit.settle()
    await settled()
    assert replies.answer.code == ResponseCode.SUCCESS


@pytest.mark.parametrize(
    ("encoded", "remark"),
    [
        (
            properties.encode({**PROPERTIES, "REPLY_TO_CLIENT": "nobody"}),
            "push reply message fail, channel of <nobody> not found.",
        ),
        (b"", "reply message properties[REPLY_TO_CLIENT] is null"),
    ],
)
async def test_a_reply_to_nobody_is_an_error_and_stored(replies: Replies, encoded: bytes, remark: str) -> None:
    await replies.send(v2(properties=encoded.decode()))
    assert (replies.answer.code, replies.answer.remark) == (ResponseCode.SYSTEM_ERROR, remark)
    assert len(replies.desk.messages(REPLY_TOPIC)) == 1


async def test_a_requester_that_said_goodbye_is_not_online(replies: Replies) -> None:
    replies.desk.producers.unregister("requesters", replies.requester)
    await replies.send()
    assert replies.answer.code == ResponseCode.SYSTEM_ERROR
    assert replies.requester.requests == []


async def test_a_requester_that_does_not_read_is_sent_nothing(replies: Replies) -> None:
    replies.requester.is_writable = False
    await replies.send()
    assert replies.requester.requests == []
    assert replies.answer.code == ResponseCode.SYSTEM_ERROR
    assert replies.answer.remark == f"push reply message to {REQUESTER} fail."


@pytest.mark.parametrize(
    "outcome", [RemotingTimeout("no answer"), ConnectionClosed("gone"), RemotingCommand(code=ResponseCode.SYSTEM_ERROR, opaque=1)]
)
async def test_a_requester_that_does_not_answer_or_cannot_take_the_reply_is_an_error(
    replies: Replies, outcome: Exception | RemotingCommand
) -> None:
    await replies.send()
    waiting = replies.requester.waiting.pop(0)
    waiting.set_exception(outcome) if isinstance(outcome, Exception) else waiting.set_result(outcome)
    await settled()
    assert replies.answer.code == ResponseCode.SYSTEM_ERROR
    assert replies.answer.remark == f"push reply message to {REQUESTER} fail."


async def test_a_reply_that_could_not_be_stored_is_a_success_if_the_requester_has_it(replies: Replies) -> None:
    replies.desk.commit.is_held_up = True
    await replies.send()
    replies.desk.commit.fail(StoreUnwritable("the disk is full"))
    await replies.requester_answers()
    assert replies.answer.code == ResponseCode.SUCCESS
    assert replies.answer.decode_header(SendMessageResponseHeader).msg_id == "0"


async def test_a_reply_too_large_to_be_stored_is_pushed(make_desk: Callable[..., Desk], tasks: Tasks) -> None:
    replies = Replies(make_desk(max_message_size=1000), tasks)
    await replies.send(body=bytes(1001))
    await replies.requester_answers()
    assert replies.answer.code == ResponseCode.SUCCESS
    assert [len(body) for _, _, body in replies.requester.requests] == [1001]
    assert replies.desk.messages(REPLY_TOPIC) == []


async def test_replies_are_not_stored_where_the_settings_say_so(desk: Desk, tasks: Tasks) -> None:
    replies = Replies(desk, tasks, is_storing=False)
    await replies.send()
    await replies.requester_answers()
    header = replies.answer.decode_header(SendMessageResponseHeader)
    assert (header.msg_id, header.queue_id, header.queue_offset) == ("0", 0, 0)
    assert desk.messages(REPLY_TOPIC) == []


async def test_a_one_way_reply_is_pushed_and_stored_and_not_answered(replies: Replies) -> None:
    await replies.send(oneway=True)
    await replies.requester_answers()
    assert replies.replier.answers == []
    assert len(replies.requester.requests) == len(replies.desk.messages(REPLY_TOPIC)) == 1


async def test_a_reply_to_a_topic_that_does_not_exist_is_refused(replies: Replies) -> None:
    await replies.send(v2(topic="Other_REPLY_TOPIC", default_topic="none"))
    assert replies.answer.code == ResponseCode.TOPIC_NOT_EXIST
    assert replies.requester.requests == []


async def test_a_flag_that_claims_a_transaction_is_not_stored(replies: Replies) -> None:
    await replies.send(v2(sys_flag=sysflag.TRANSACTION_PREPARED_TYPE))
    (record,) = replies.desk.messages(REPLY_TOPIC)
    assert record.sys_flag == 0


@pytest.mark.parametrize("decided", [sysflag.TRANSACTION_COMMIT_TYPE, sysflag.TRANSACTION_ROLLBACK_TYPE])
async def test_a_reply_that_claims_to_be_decided_is_neither_pushed_nor_stored(replies: Replies, decided: int) -> None:
    await replies.send(v2(sys_flag=decided))
    assert replies.answer.code == ResponseCode.MESSAGE_ILLEGAL
    assert replies.requester.requests == []
    assert replies.desk.messages(REPLY_TOPIC) == []


async def test_what_only_a_broker_writes_is_neither_pushed_nor_stored(replies: Replies) -> None:
    sent = v2()
    forged = "REAL_TOPIC\x01SCHEDULE_TOPIC_XXXX\x02TRANSACTION_CHECK_TIMES\x011\x02"
    await replies.send(v2(properties=forged + sent.properties, sys_flag=0x70))
    ((_, pushed, _),) = replies.requester.requests
    assert pushed.sys_flag == 0
    (record,) = replies.desk.messages(REPLY_TOPIC)
    for encoded in (pushed.properties.encode(), record.properties):
        assert not {"REAL_TOPIC", "TRANSACTION_CHECK_TIMES"} & properties.decode(encoded).keys()


async def test_with_too_many_replies_under_way_another_is_refused_until_one_is_through(
    replies: Replies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply_processor, "MAX_IN_PROGRESS", 1)  # and as many again for a client with few
    for _ in range(3):
        await replies.send()
    assert replies.answer.code == ResponseCode.SYSTEM_BUSY
    assert len(replies.requester.requests) == 2
    await replies.requester_answers()
    await replies.send()
    assert len(replies.requester.requests) == 3
