"""When a broker that starts accepts its first message, and messages in great numbers for one to recover."""

from __future__ import annotations

import asyncio
import os
import struct
import time

from broker.protocol.codes import RequestCode, ResponseCode
from broker.protocol.headers import SendMessageRequestHeaderV2
from broker.remoting.client import RemotingClient
from broker.remoting.errors import RemotingError

PROBE_TOPIC = "BenchmarkProbe"
FILL_TOPIC = "BenchmarkFill"
BATCH = 128
_POLL_S = 0.01
_IN_FLIGHT = 16
_BATCHED = struct.Struct(">iiiii")


async def first_accepted_s(address: str, timeout_s: float) -> float:
    """The time (seconds since the epoch) at which the broker there first answered a send with SUCCESS. Raises TimeoutError."""
    client = RemotingClient()
    try:
        async with asyncio.timeout(timeout_s):
            while not await _is_accepted(client, address):  # noqa: ASYNC110
                await asyncio.sleep(_POLL_S)
        return time.time()
    finally:
        await client.close()


async def fill(address: str, messages: int, body_size: int) -> None:
    """Sends at least that many plain messages in batches. Raises RemotingError, or ValueError if one is refused."""
    client = RemotingClient()
    header = _header(FILL_TOPIC, is_batch=True)
    batch = _batch_body(os.urandom(body_size))
    remaining = -(-messages // BATCH)

    async def send() -> None:
        nonlocal remaining
        while remaining > 0:
            remaining -= 1
            answer = await client.invoke(address, RequestCode.SEND_BATCH_MESSAGE, header, batch, timeout_ms=30_000)
            if answer.code != ResponseCode.SUCCESS:
                raise ValueError(f"a batch was refused: {answer.remark}")

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(_IN_FLIGHT):
                group.create_task(send())
    finally:
        await client.close()


async def _is_accepted(client: RemotingClient, address: str) -> bool:
    try:
        answer = await client.invoke(
            address, RequestCode.SEND_MESSAGE_V2, _header(PROBE_TOPIC, is_batch=False), b"probe", timeout_ms=1000
        )
    except RemotingError:
        return False
    return answer.code == ResponseCode.SUCCESS


def _header(topic: str, *, is_batch: bool) -> SendMessageRequestHeaderV2:
    return SendMessageRequestHeaderV2(
        producer_group="benchmark",
        topic=topic,
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=0,
        sys_flag=0,
        born_timestamp=int(time.time() * 1000),
        flag=0,
        batch=is_batch,
    )


def _batch_body(body: bytes) -> bytes:
    """So many equal messages as `broker.server.sending.batch_body` draws them."""
    message = _BATCHED.pack(_BATCHED.size + len(body) + 2, 0, 0, 0, len(body)) + body + bytes(2)
    return message * BATCH
