"""Stages 9 and 10: sends check-backs for transactions whose decision is missing."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tutorials.build_your_own.solution import frames, record
from tutorials.build_your_own.solution.frames import Command
from tutorials.build_your_own.solution.record import Record
from tutorials.build_your_own.solution.transactions import Pending, Transactions

CHECK_TRANSACTION_STATE = 39

Send = Callable[[bytes], None]
"""A function that writes a frame to a producer."""


@dataclass(frozen=True, slots=True)
class CheckPolicy:
    """The settings transactionTimeOut, transactionCheckInterval and transactionCheckMax of broker.conf."""

    timeout_s: float
    interval_s: float
    check_max: int


class CheckBack:
    """Sends check-backs about pending transactions to the connected producers."""

    def __init__(self, transactions: Transactions, policy: CheckPolicy) -> None:
        self.producers: dict[str, list[Send]] = {}
        """Functions that send a frame to a producer, keyed by producer group. Heartbeats add them."""
        self._transactions = transactions
        self._policy = policy

    def forget(self, send: Send) -> None:
        """Removes the producer of a closed connection."""
        for online in self.producers.values():
            if send in online:
                online.remove(send)

    def look(self) -> None:
        """Sends due check-backs. Discards a transaction after the maximum number of check-backs. Call this method frequently."""
        now_s = time.monotonic()
        for pending in list(self._transactions.pending.values()):
            if pending.due_s <= now_s:
                pending.due_s = now_s + self._policy.interval_s
                self._look_at(pending)

    def _look_at(self, pending: Pending) -> None:
        if pending.checks >= self._policy.check_max:
            self._transactions.discard(pending)
        elif online := self.producers.get(pending.group):
            # Only sent check-backs count. Without a connected producer, the half message remains pending.
            pending.checks += 1
            online[pending.checks % len(online)](check_request(pending))


def check_request(pending: Pending) -> bytes:
    """Returns the frame of a check-back, a one-way request.

    The producer responds with a separate END_TRANSACTION request, as after its local transaction.
    """
    half = pending.half
    fields: Mapping[str, str] = {
        "tranStateTableOffset": str(half.queue_offset),
        "commitLogOffset": str(half.commit_log_offset),
        "msgId": half.property("UNIQ_KEY"),
        "transactionId": half.property("UNIQ_KEY"),
        "offsetMsgId": (half.store_host + half.commit_log_offset.to_bytes(8)).hex().upper(),
    }
    body = record.encode(as_sent(half, pending.checks))
    return frames.encode(Command(CHECK_TRANSACTION_STATE, 0, frames.ONEWAY_FLAG, fields, body))


def as_sent(half: Record, checks: int) -> Record:
    """Returns the half message with its original topic and queue, and with the number of check-backs."""
    properties = {**half.message.properties, "TRANSACTION_CHECK_TIMES": str(checks)}
    message = replace(
        half.message, topic=half.property("REAL_TOPIC"), queue_id=int(half.property("REAL_QID")), properties=properties
    )
    return replace(half, message=message)
