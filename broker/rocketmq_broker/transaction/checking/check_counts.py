"""The file with the number of checks of each pending transaction. RocketMQ has no such file and rewrites half messages instead.

    {"checks": {"COMMIT LOG OFFSET": CHECKS, ...}}

The file counts only checks that were answered or timed out, because the answer to a check in flight is lost when the broker
stops. If the file is lost, transactions are checked a few more times than configured.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from rocketmq_broker.transaction.pending_transaction import PendingTransaction

FILE_NAME = "transactionCheckTimes.json"


def check_counts_as_json(transactions: Iterable[PendingTransaction], unanswered: Mapping[int, int]) -> dict[str, Any]:
    """Returns the content of the file as JSON.

    `unanswered` contains the numbers of unanswered checks, keyed by commit log offset (ChecksInFlight).
    """
    counts = {
        transaction.commit_log_offset: transaction.checks - unanswered.get(transaction.commit_log_offset, 0)
        for transaction in transactions
        if transaction.checks
    }
    return {"checks": {str(commit_log_offset): checks for commit_log_offset, checks in counts.items() if checks > 0}}


def check_counts_from_json(content: Any) -> dict[int, int]:
    """Returns the numbers of checks, keyed by commit log offset. Returns an empty dict if the content is malformed."""
    try:
        return {int(offset): int(checks) for offset, checks in content["checks"].items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}
