"""A batch with as many messages as fit into 4 MB, and one with as many as a batch may have."""

from benchmarks.longest_stop.rows.reading.views_of_a_large_message import SEND
from benchmarks.longest_stop.stage import Stage
from rocketmq_broker.protocol.codes import RequestCode

WHAT = "batch of 190,000 messages, refused; then one of 65,536"
MESSAGES = 190_000
MOST = 65_536
EMPTY_MESSAGE = b"\x00\x00\x00\x16" + bytes(18)


async def run(stage: Stage) -> None:
    """Measures the batches."""
    peer = await stage.connect()
    await peer.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"the queue is there")
    await stage.begin()
    await peer.ask(RequestCode.SEND_BATCH_MESSAGE, SEND, EMPTY_MESSAGE * MESSAGES)
    await peer.ask(RequestCode.SEND_BATCH_MESSAGE, SEND, EMPTY_MESSAGE * MOST)
