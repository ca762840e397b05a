"""Short batches whose common properties hold thousands of keys, and those that the broker accepts."""

from benchmarks.longest_stop.rows.reading.views_of_a_large_message import SEND
from benchmarks.longest_stop.stage import Stage
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers import SendMessageRequestHeaderV2
from rocketmq_broker.server.sending.sent_properties import MOST_KEYS

WHAT = "batches of 50 and 140 kB with 16,000, 8,000 and 1,000 keys for each message"
EMPTY_MESSAGE = b"\x00\x00\x00\x16" + bytes(18)


async def run(stage: Stage) -> None:
    """Measures the batches, single messages with as many keys, and their indexing."""
    peer = await stage.connect()
    await peer.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"the queue is there")
    await stage.begin()
    for keys, messages in ((16_000, 900), (8000, 5000), (MOST_KEYS, 260)):
        await peer.ask(RequestCode.SEND_BATCH_MESSAGE, _with_keys(keys), EMPTY_MESSAGE * messages)
    await peer.ask_all(peer.frame(RequestCode.SEND_MESSAGE_V2, _with_keys(MOST_KEYS), b"x") for _ in range(2000))


def _with_keys(count: int) -> SendMessageRequestHeaderV2:
    return SendMessageRequestHeaderV2(
        producer_group="greedy", topic="views", default_topic="TBW102", default_topic_queue_nums=1, queue_id=0, sys_flag=0,
        born_timestamp=1, flag=0, properties="KEYS\x01" + " ".join(["k"] * count),
    )  # fmt: skip
