"""The file that keeps how often each pending transaction was checked. RocketMQ writes the half message anew for that.

    {"checks": {"COMMIT LOG OFFSET": CHECKS, ...}}

It counts only checks that a producer answered or that timed out: the answer to a check that is under way when the broker ends
reaches nobody. Losing the file costs a few checks too many, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rocketmq_broker.transaction.pending_transaction import PendingTransaction

FILE_NAME = "transactionCheckTimes.json"


def check_counts_as_json(transactions: Iterable[PendingTransaction], unanswered: Mapping[int, int]) -> dict[str, Any]:
    """The file's content. `unanswered` is how many checks by commit log offset may still be answered (ChecksInFlight)."""
    counts = {
        transaction.commit_log_offset: transaction.checks - unanswered.get(transaction.commit_log_offset, 0)
        for transaction in transactions
        if transaction.checks
    }
    return {"checks": {str(commit_log_offset): checks for commit_log_offset, checks in counts.items() if checks > 0}}


def check_counts_from_json(content: Any) -> dict[int, int]:
    """Checks by commit log offset; none if the content is not what it should be."""
    try:
        return {int(offset): int(checks) for offset, checks in content["checks"].items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}
