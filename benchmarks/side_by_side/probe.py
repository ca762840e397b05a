"""The time of a starting broker's first accepted message."""

from __future__ import annotations

import asyncio
import time

from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.headers import SendMessageRequestHeaderV2
from rocketmq_broker.remoting.client import RemotingClient
from rocketmq_broker.remoting.errors import RemotingError

PROBE_TOPIC = "BenchmarkProbe"
_POLL_S = 0.01


async def first_accepted_s(address: str, timeout_s: float) -> float:
    """Returns the time (seconds since the epoch) at which the broker first answered a send with SUCCESS. Raises TimeoutError."""
    client = RemotingClient()
    try:
        async with asyncio.timeout(timeout_s):
            while not await _is_accepted(client, address):  # noqa: ASYNC110
                await asyncio.sleep(_POLL_S)
        return time.time()
    finally:
        await client.close()


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
