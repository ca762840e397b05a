"""Tests of a client that forges recovery data before the broker is killed. The producers' decisions must still take effect."""

from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import msgspec
import pytest

from rocketmq_broker.message import properties as props
from rocketmq_broker.message import sysflag, topics
from rocketmq_broker.message.ids import offset_message_id, parse_offset_message_id
from rocketmq_broker.message.record import decode_records, host_bytes
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.headers.pull import PullMessageRequestHeader, UpdateConsumerOffsetRequestHeader
from rocketmq_broker.protocol.headers.send import ConsumerSendMsgBackRequestHeader, SendMessageResponseHeader
from rocketmq_broker.protocol.headers.transaction import EndTransactionRequestHeader, ResumeCheckHalfMessageRequestHeader
from rocketmq_broker.remoting.client import RemotingClient
from tests.e2e.clients import SEND
from tests.stored_records import encoded

pytestmark = pytest.mark.e2e

GROUP = "victims"
COMMIT, ROLLBACK = sysflag.TRANSACTION_COMMIT_TYPE, sysflag.TRANSACTION_ROLLBACK_TYPE
HEAD_LENGTH = 88
"""Bytes of a record with IPv4 hosts before its body."""
UNASKED = {"transactionTimeOut": "600000", "transactionCheckInterval": "600000"}


class Half(NamedTuple):
    """The offsets of a half message that was acknowledged."""

    commit_log_offset: int
    queue_offset: int


class Peer:
    """A client with a separate connection."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._client = RemotingClient()

    async def ask(self, code: int, header: CommandHeader, body: bytes = b"") -> Any:
        return await self._client.invoke(self._address, code, header, body, timeout_ms=20_000)

    async def send(self, transaction_id: str, body: bytes, sys_flag: int = 0, **more: str) -> Any:
        named = {"UNIQ_KEY": transaction_id, "PGROUP": GROUP, **more}
        changes = {"producer_group": GROUP, "sys_flag": sys_flag, "properties": props.encode(named).decode()}
        return await self.ask(RequestCode.SEND_MESSAGE_V2, msgspec.structs.replace(SEND, **changes), body)

    async def send_half(self, transaction_id: str, body: bytes, **more: str) -> Half:
        answer = await self.send(transaction_id, body, sysflag.TRANSACTION_PREPARED_TYPE, TRAN_MSG="true", **more)
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        header = answer.decode_header(SendMessageResponseHeader)
        return Half(parse_offset_message_id(header.msg_id).commit_log_offset, header.queue_offset)

    async def end(self, half: Half, answer: int) -> ResponseCode:
        header = EndTransactionRequestHeader(
            producer_group=GROUP, tran_state_table_offset=half.queue_offset, commit_log_offset=half.commit_log_offset,
            commit_or_rollback=answer, from_transaction_check=False, msg_id="x",
        )  # fmt: skip
        return ResponseCode((await self.ask(RequestCode.END_TRANSACTION, header)).code)

    async def consumed(self) -> list[bytes]:
        header = PullMessageRequestHeader(
            consumer_group="readers", topic="orders", queue_id=0, queue_offset=0, max_msg_nums=32, sys_flag=4, commit_offset=0,
            suspend_timeout_millis=0, subscription="*", sub_version=0,
        )  # fmt: skip
        return [record.body for record in decode_records((await self.ask(RequestCode.PULL_MESSAGE, header)).body)]

    async def reconnect(self) -> None:
        """Opens a new connection after the broker was killed."""
        await self._client.close()
        self._client = RemotingClient()

    async def close(self) -> None:
        await self._client.close()


@pytest.fixture
async def peers(start_broker: Callable[..., Any]) -> AsyncIterator[tuple[Any, Peer, Peer]]:
    broker = start_broker(UNASKED)
    victim, forger = Peer(broker.address), Peer(broker.address)
    yield broker, victim, forger
    await victim.close()
    await forger.close()


async def test_decisions_count_though_somebody_forged_them_before_the_broker_was_killed(peers: tuple[Any, Peer, Peer]) -> None:
    broker, victim, forger = peers
    halves = {name: await victim.send_half(name, b"genuine " + name.encode()) for name in ("A", "B", "C", "D")}
    decided = await victim.send_half("E", b"genuine E")
    assert await victim.end(decided, COMMIT) == ResponseCode.SUCCESS

    assert (await forger.send("A", b"forged A", COMMIT)).code == ResponseCode.MESSAGE_ILLEGAL
    await forger.send_half("B", b"forged B", TRANSACTION_CHECK_TIMES="1", TRAN_PREPARED_QUEUE_OFFSET="1")
    assert await forger.end(await forger.send_half("C", b"twin of C"), COMMIT) == ResponseCode.SUCCESS
    for topic in (topics.HALF_TOPIC, topics.OP_HALF_TOPIC):
        offset = UpdateConsumerOffsetRequestHeader(
            consumer_group=topics.TRANSACTION_CONSUMER_GROUP, topic=topic, queue_id=0, commit_offset=7
        )
        assert (await forger.ask(RequestCode.UPDATE_CONSUMER_OFFSET, offset)).code == ResponseCode.NO_PERMISSION

    broker.process.kill()
    broker.process.start()
    await victim.reconnect()

    assert await victim.consumed() == [b"genuine E", b"twin of C"]
    for name in ("A", "B", "C"):
        assert await victim.end(halves[name], COMMIT) == ResponseCode.SUCCESS
    assert await victim.end(halves["D"], ROLLBACK) == ResponseCode.SUCCESS
    assert await victim.consumed() == [b"genuine E", b"twin of C", b"genuine A", b"genuine B", b"genuine C"]


async def test_a_record_forged_in_a_body_and_a_half_message_are_not_taken_for_messages_of_consumers(
    peers: tuple[Any, Peer, Peer],
) -> None:
    broker, victim, forger = peers
    half = await victim.send_half("A", b"genuine A")
    probe = (await forger.send("probe", b"")).decode_header(SendMessageResponseHeader)
    size = (await forger.send("probe", b"")).decode_header(SendMessageResponseHeader)
    first, second = (parse_offset_message_id(sent.msg_id).commit_log_offset for sent in (probe, size))
    at = second + (second - first) + HEAD_LENGTH
    own = {"UNIQ_KEY": "F", "PGROUP": GROUP, "REAL_TOPIC": topics.OP_HALF_TOPIC, "REAL_QID": "0"}
    record = encoded(topics.CHECK_MAX_TIME_TOPIC, b"forged", own, commit_log_offset=at)
    await forger.send("probe", record)
    host, _, port = broker.address.rpartition(":")
    resume = ResumeCheckHalfMessageRequestHeader(msg_id=offset_message_id(host_bytes(host, int(port)), at))
    answer = await forger.ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, resume)
    assert (answer.code, "no consume queue contains a message at" in (answer.remark or "")) == (ResponseCode.SYSTEM_ERROR, True)

    back = ConsumerSendMsgBackRequestHeader(offset=half.commit_log_offset, group="thieves", delay_level=1)
    assert (await forger.ask(RequestCode.CONSUMER_SEND_MSG_BACK, back)).code == ResponseCode.NO_PERMISSION
    assert await victim.end(half, COMMIT) == ResponseCode.SUCCESS
