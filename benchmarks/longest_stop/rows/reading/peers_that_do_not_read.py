"""Sixteen clients ask again and again for a message of 4 MB, and read none of the answers."""

import asyncio
import contextlib

from benchmarks.longest_stop.rows.reading.views_of_a_large_message import BODY_BYTES, SEND
from benchmarks.longest_stop.stage import Stage
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers import SendMessageResponseHeader, ViewMessageRequestHeader

WHAT = "16 peers that do not read"
PEERS = 16
VIEWS = 15
"""Answers to as many are a little less than a connection may have unsent."""


async def run(stage: Stage) -> None:
    """Measures the memory of unread answers."""
    answer = await (await stage.connect()).ask(RequestCode.SEND_MESSAGE_V2, SEND, bytes(BODY_BYTES))
    view = ViewMessageRequestHeader(offset=int(answer.decode_header(SendMessageResponseHeader).msg_id[16:], 16))
    peers = [await stage.connect() for _ in range(PEERS)]
    await stage.begin()
    for peer in peers:
        with contextlib.suppress(ConnectionError):
            await peer.write(b"".join(peer.frame(RequestCode.VIEW_MESSAGE_BY_ID, view) for _ in range(VIEWS)))
    await asyncio.sleep(1)
