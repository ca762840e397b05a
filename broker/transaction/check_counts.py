"""How often each undecided transaction was checked, as a small file keeps it: RocketMQ rewrites the half message for it.

    {"checks": {"COMMIT LOG OFFSET": CHECKS, ...}}

Only transactions that were checked at all are in it. Losing it costs a few checks too many, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from broker.transaction.pending import PendingTransaction

FILE_NAME = "transactionCheckTimes.json"


def check_counts_as_json(transactions: Iterable[PendingTransaction]) -> dict[str, Any]:
    """The file's content."""
    return {
        "checks": {str(transaction.commit_log_offset): transaction.checks for transaction in transactions if transaction.checks}
    }


def check_counts_from_json(content: Any) -> dict[int, int]:
    """Checks by commit log offset; none if the content is not what it should be."""
    try:
        return {int(offset): int(checks) for offset, checks in content["checks"].items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}
