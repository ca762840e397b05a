"""Creates transactions as read from the commit log."""

import json
from dataclasses import replace

from demo.commit_log import Trace
from rocketmq_broker.message import properties
from rocketmq_broker.message.record import Record

NOTHING = Record(
    size=0,
    body_crc=0,
    queue_id=2,
    flag=0,
    queue_offset=5,
    commit_log_offset=0,
    sys_flag=0,
    born_timestamp=0,
    born_host=bytes(8),
    store_timestamp=0,
    store_host=bytes(8),
    reconsume_times=0,
    prepared_transaction_offset=0,
    body=b"",
    topic=b"",
    properties=b"",
)


def trace_of(order_id: str, *, checks: int = 0) -> Trace:
    """Returns a committed transaction: its half message is stored at 1 s, and the message is visible at 4 s."""
    half = replace(NOTHING, store_timestamp=1_000, properties=properties.encode({"KEYS": order_id}))
    committed = replace(NOTHING, store_timestamp=4_000, properties=properties.encode({"TRANSACTION_CHECK_TIMES": str(checks)}))
    return Trace(half, replace(NOTHING, store_timestamp=4_001), [committed])


def undelivered(transaction_id: str, *, total_cents: int = 100, body: bytes = b"", is_decided: bool = True) -> Trace:
    """Returns a transaction without a committed message: rolled back or pending."""
    body = body or json.dumps({"total_cents": total_cents}).encode()
    half = replace(NOTHING, store_timestamp=1_000, body=body, properties=properties.encode({"UNIQ_KEY": transaction_id}))
    return Trace(half, NOTHING if is_decided else None)
