"""How many checks each producer still owes an answer to, so that none is flooded.

An Apache client holds 2,000 checks and drops the rest in silence; a half message checked in vain is a check lost.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Producer = TypeVar("Producer", bound=Hashable)


class ChecksInFlight(Generic[Producer]):
    """Checks sent and not answered, by producer. One that stays unanswered stops counting after a time."""

    def __init__(self, *, limit: int = 256, answer_timeout_ms: int = 10_000) -> None:
        """At most `limit` for each producer at a time."""
        self._limit = limit
        self._answer_timeout_ms = answer_timeout_ms
        self._sent: dict[Producer, dict[int, int]] = {}  # transaction -> when it was asked about, oldest first

    def may_ask(self, producer: Producer, now_ms: int) -> bool:
        """Whether one more check may go there."""
        sent = self._sent.get(producer)
        if sent is None or len(sent) < self._limit:
            return True
        self._forget_unanswered(sent, now_ms)
        return len(sent) < self._limit

    def asked(self, producer: Producer, commit_log_offset: int, now_ms: int) -> None:
        """A check was sent."""
        sent = self._sent.setdefault(producer, {})
        sent.pop(commit_log_offset, None)
        sent[commit_log_offset] = now_ms

    def answered(self, producer: Producer, commit_log_offset: int) -> None:
        """The producer said something about that transaction, if only that it does not know."""
        sent = self._sent.get(producer)
        if sent is not None and sent.pop(commit_log_offset, None) is not None and not sent:
            del self._sent[producer]

    def owes(self, producer: Producer, commit_log_offset: int) -> bool:
        """Whether it was asked about that transaction and has not answered."""
        return commit_log_offset in self._sent.get(producer, ())

    def departed(self, producer: Producer) -> None:
        """It is gone, and owes nothing any more."""
        self._sent.pop(producer, None)

    def count(self, producer: Producer) -> int:
        """How many checks it has not answered."""
        return len(self._sent.get(producer, ()))

    def _forget_unanswered(self, sent: dict[int, int], now_ms: int) -> None:
        for commit_log_offset, sent_ms in list(sent.items()):
            if 0 <= now_ms - sent_ms < self._answer_timeout_ms:
                break
            del sent[commit_log_offset]
