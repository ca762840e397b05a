"""960,000 messages with keys of one index slot, and a query for a key that none of them has."""

from benchmarks.longest_stop.stage import Stage
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers import QueryMessageRequestHeader, SendMessageRequestHeaderV2

WHAT = "query a key in a slot with 960,000 others"
SETTINGS = {"maxHashSlotNum": "1", "flushDiskType": "ASYNC_FLUSH"}
MESSAGES = 960_000
AT_ONCE = 4_000
SEND = SendMessageRequestHeaderV2(
    producer_group="greedy", topic="keys", default_topic="TBW102", default_topic_queue_nums=1, queue_id=0, sys_flag=0,
    born_timestamp=1, flag=0, properties="KEYS\x01k",
)  # fmt: skip


async def run(stage: Stage) -> None:
    """Measures the query."""
    peer = await stage.connect()
    for _ in range(0, MESSAGES, AT_ONCE):
        await peer.ask_all([peer.frame(RequestCode.SEND_MESSAGE_V2, SEND, b"x") for _ in range(AT_ONCE)])
    await stage.begin()
    await peer.ask(RequestCode.QUERY_MESSAGE, QueryMessageRequestHeader("keys", "another", 32, 0, 1 << 50))
