"""One client asks 1,500 times for a message of 4 MB in one write, and aborts the connection without reading."""

import asyncio

from benchmarks.longest_stop.stage import Stage
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers import SendMessageRequestHeaderV2, SendMessageResponseHeader, ViewMessageRequestHeader

WHAT = "1,500 views of a 4 MB message in one write, then abort"
VIEWS = 1500
BODY_BYTES = 4 * 1024 * 1024 - 1024
SEND = SendMessageRequestHeaderV2(
    producer_group="greedy",
    topic="views",
    default_topic="TBW102",
    default_topic_queue_nums=1,
    queue_id=0,
    sys_flag=0,
    born_timestamp=1,
    flag=0,
)


async def run(stage: Stage) -> None:
    """Measures the requests and the end of their connection."""
    peer = await stage.connect()
    answer = await peer.ask(RequestCode.SEND_MESSAGE_V2, SEND, bytes(BODY_BYTES))
    offset = int(answer.decode_header(SendMessageResponseHeader).msg_id[16:], 16)
    view = ViewMessageRequestHeader(offset=offset)
    await stage.begin()
    await peer.write(b"".join(peer.frame(RequestCode.VIEW_MESSAGE_BY_ID, view) for _ in range(VIEWS)))
    await asyncio.sleep(1)
    peer.hang_up()
