"""Creates transactions as read from the commit log."""

import json

from demo.commit_log import Trace
from tests.stored_records import stored


def trace_of(order_id: str, *, checks: int = 0) -> Trace:
    """Returns a committed transaction: its half message is stored at 1 s, and the message is visible at 4 s."""
    half = stored(properties={"KEYS": order_id}, store_timestamp=1_000)
    checked = {"TRANSACTION_CHECK_TIMES": str(checks)}
    committed = stored(properties=checked, store_timestamp=4_000, queue_id=2, queue_offset=5)
    return Trace(half, stored(store_timestamp=4_001), [committed])


def undelivered(transaction_id: str, *, total_cents: int = 100, body: bytes = b"", is_decided: bool = True) -> Trace:
    """Returns a transaction without a committed message: rolled back or pending."""
    body = body or json.dumps({"total_cents": total_cents}).encode()
    half = stored(body=body, properties={"UNIQ_KEY": transaction_id}, store_timestamp=1_000)
    return Trace(half, stored() if is_decided else None)
