"""Requests that the benchmark itself sends to a broker: a first message, a topic, and the number of visible messages."""

import asyncio
import time

from demo.processes import ProcessFailed
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.headers.pull import GetMaxOffsetRequestHeader, GetMaxOffsetResponseHeader
from rocketmq_broker.protocol.headers.send import SendMessageRequestHeaderV2
from rocketmq_broker.protocol.headers.topic import CreateTopicRequestHeader
from rocketmq_broker.remoting.client import RemotingClient
from rocketmq_broker.remoting.errors import RemotingError

PROBE_TOPIC = "BenchmarkProbe"
QUEUES = 4
ANSWER_WITHIN_MS = 30_000
_POLL_S = 0.01


async def first_accepted_s(address: str, timeout_s: float) -> float:
    """Returns the time at which the broker first accepted a message, in seconds since the epoch.

    Raises TimeoutError after `timeout_s`.
    """
    client = RemotingClient()
    try:
        async with asyncio.timeout(timeout_s):
            while not await _is_accepted(client, address):  # noqa: ASYNC110
                await asyncio.sleep(_POLL_S)
        return time.time()
    finally:
        await client.close()


async def make_topic(address: str, topic: str, message_type: str) -> None:
    """Creates a topic with 4 queues and this `message.type`, because Apache's proxy requires both."""
    header = CreateTopicRequestHeader(
        topic, "TBW102", QUEUES, QUEUES, 6, "SINGLE_TAG", attributes=f"+message.type={message_type}"
    )
    await _answer(address, RequestCode.UPDATE_AND_CREATE_TOPIC, header)


async def visible_messages(address: str, topic: str) -> int:
    """Returns the number of messages in the topic that consumers can see, which is the sum of its queues' maximum offsets."""
    total = 0
    for queue_id in range(QUEUES):
        answer = await _answer(address, RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequestHeader(topic, queue_id))
        total += answer.decode_header(GetMaxOffsetResponseHeader).offset
    return total


async def _answer(address: str, code: RequestCode, header: CommandHeader) -> RemotingCommand:
    client = RemotingClient()
    try:
        answer = await client.invoke(address, code, header, timeout_ms=ANSWER_WITHIN_MS)
    finally:
        await client.close()
    if answer.code != ResponseCode.SUCCESS:
        raise ProcessFailed(f"{address} refused {code.name}: {answer.remark}")
    return answer


async def _is_accepted(client: RemotingClient, address: str) -> bool:
    try:
        answer = await client.invoke(address, RequestCode.SEND_MESSAGE_V2, _header(), b"probe", timeout_ms=1000)
    except RemotingError:
        return False
    return answer.code == ResponseCode.SUCCESS


def _header() -> SendMessageRequestHeaderV2:
    return SendMessageRequestHeaderV2(
        producer_group="benchmark",
        topic=PROBE_TOPIC,
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=0,
        sys_flag=0,
        born_timestamp=int(time.time() * 1000),
        flag=0,
    )
