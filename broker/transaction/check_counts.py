"""The small file that keeps how often each undecided transaction was checked: RocketMQ rewrites the half message for it.

    {"version": 1, "checks": {"COMMIT LOG OFFSET": CHECKS, ...}}

Only transactions that were checked at all are in it. Losing it costs a few checks too many, nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from broker.transaction.pending import PendingTransaction

FILE_NAME = "transactionCheckTimes.json"


def encode_check_counts(transactions: Iterable[PendingTransaction]) -> bytes:
    """The file's content."""
    checks = {str(transaction.commit_log_offset): transaction.checks for transaction in transactions if transaction.checks}
    return json.dumps({"version": 1, "checks": checks}).encode()


def decode_check_counts(content: bytes) -> dict[int, int]:
    """Checks by commit log offset; none if the content is not what it should be."""
    try:
        return {int(offset): int(checks) for offset, checks in json.loads(content)["checks"].items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}
