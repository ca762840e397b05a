"""Keeps pulls that found no messages until messages arrive or their timeout expires (RocketMQ's PullRequestHoldService)."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TypeVar

from rocketmq_broker.protocol.command import ReplyTo
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.server.clients.message_filters import MessageFilter

_Key = TypeVar("_Key")

DEADLINE_STEP_MS = 100
"""The granularity of deadlines, in milliseconds.

Deadlines are rounded up, so that pulls with similar deadlines share one entry.
"""

HELD_PER_CONNECTION = 8192
"""The maximum number of held pulls of a connection. Further pulls are answered immediately."""

EXPRESSIONS_PER_CONNECTION = 1 << 20
"""The maximum length, in characters, of all filter expressions of a connection's held pulls.

Pulls that would exceed it are not held.
"""


@dataclass(slots=True, eq=False)
class HeldPull:
    """A pull that waits for messages, with the parameters that are needed to repeat it."""

    connection: Connection
    reply_to: ReplyTo
    group: str
    topic: bytes
    queue_id: int
    offset: int
    max_messages: int
    message_filter: MessageFilter
    deadline_ms: int


class HeldPulls:
    """The held pulls, indexed by queue, deadline and connection. Removing a pull removes it from all three indexes."""

    def __init__(self) -> None:
        self._by_queue: dict[tuple[bytes, int], WaitingPulls] = {}
        self._by_deadline: dict[int, dict[HeldPull, None]] = {}
        self._by_connection: dict[Connection, dict[HeldPull, None]] = {}
        self._expression_lengths: Counter[Connection] = Counter()

    def __len__(self) -> int:
        return sum(map(len, self._by_connection.values()))

    def hold(self, pull: HeldPull) -> bool:
        """Adds a pull. Returns False if the limits of its connection are reached."""
        if not self._has_room_for(pull):
            return False
        if pull.message_filter.expression_length:
            self._expression_lengths[pull.connection] += pull.message_filter.expression_length
        self._by_connection.setdefault(pull.connection, {})[pull] = None
        queue = pull.topic, pull.queue_id
        if queue not in self._by_queue:
            self._by_queue[queue] = WaitingPulls(checked_until=pull.offset)
        self._by_queue[queue].add(pull)
        self._by_deadline.setdefault(_step(pull.deadline_ms), {})[pull] = None
        return True

    def checked_until(self, topic: bytes, queue_id: int) -> int | None:
        """Returns the queue offset after the last message checked for pulls by tag, or None if no pull waits for a tag."""
        waiting = self._by_queue.get((topic, queue_id))
        return waiting.checked_until if waiting is not None and waiting.is_by_tag else None

    def take_arrived(
        self, topic: bytes, queue_id: int, max_offset: int, tags_codes: Collection[int] | None = None
    ) -> list[HeldPull]:
        """Removes and returns the pulls for which the queue has new messages.

        `tags_codes` are the tags codes of all messages since `checked_until`. Without them, all pulls of the queue are returned.
        """
        waiting = self._by_queue.get((topic, queue_id))
        if waiting is None:
            return []
        arrived = waiting.wanted(max_offset, tags_codes)
        for pull in arrived:
            self._remove(pull)
        if tags_codes is not None:
            waiting.checked_until = max(waiting.checked_until, max_offset)
        return arrived

    def take_due(self, now_ms: int) -> list[HeldPull]:
        """Removes and returns the pulls whose deadline has passed."""
        due = [pull for step in [step for step in self._by_deadline if step <= now_ms] for pull in self._by_deadline[step]]
        for pull in due:
            self._remove(pull)
        return due

    def next_due_ms(self) -> int | None:
        """Returns the next deadline, or None if no pull is held."""
        return min(self._by_deadline, default=None)

    def forget(self, connection: Connection) -> None:
        """Removes the pulls of a closed connection."""
        for pull in list(self._by_connection.get(connection, ())):
            self._remove(pull)

    def _has_room_for(self, pull: HeldPull) -> bool:
        expression_lengths = self._expression_lengths[pull.connection] + pull.message_filter.expression_length
        held = self._by_connection.get(pull.connection, ())
        return len(held) < HELD_PER_CONNECTION and expression_lengths <= EXPRESSIONS_PER_CONNECTION

    def _remove(self, pull: HeldPull) -> None:
        queue = pull.topic, pull.queue_id
        self._by_queue[queue].remove(pull)
        if not self._by_queue[queue]:
            del self._by_queue[queue]
        _discard(self._by_deadline, _step(pull.deadline_ms), pull)
        _discard(self._by_connection, pull.connection, pull)
        if pull.message_filter.expression_length:
            self._expression_lengths[pull.connection] -= pull.message_filter.expression_length
            if not self._expression_lengths[pull.connection]:
                del self._expression_lengths[pull.connection]


def _step(deadline_ms: int) -> int:
    return -(-deadline_ms // DEADLINE_STEP_MS) * DEADLINE_STEP_MS


def _discard(table: dict[_Key, dict[HeldPull, None]], key: _Key, pull: HeldPull) -> None:
    entries = table[key]
    del entries[pull]
    if not entries:
        del table[key]


class WaitingPulls:
    """The held pulls of one queue, keyed by tags code.

    Any new message wakes the pulls without a filter or with an SQL92 expression.
    """

    def __init__(self, checked_until: int) -> None:
        self.checked_until = checked_until
        """The queue offset after the last message checked for all pulls by tag. None of the earlier messages matched."""
        self._any: dict[HeldPull, None] = {}
        self._by_code: dict[int, dict[HeldPull, None]] = {}

    def __bool__(self) -> bool:
        return bool(self._any or self._by_code)

    @property
    def is_by_tag(self) -> bool:
        """Returns True if pulls wait for messages with certain tags."""
        return bool(self._by_code)

    def add(self, pull: HeldPull) -> None:
        """Adds a pull."""
        if pull.message_filter.tags_codes is None:
            self._any[pull] = None
        else:
            for code in pull.message_filter.tags_codes:
                self._by_code.setdefault(code, {})[pull] = None

    def remove(self, pull: HeldPull) -> None:
        """Removes a pull, and advances the pull's offset past the messages that were already checked."""
        if pull.message_filter.tags_codes is None:
            del self._any[pull]
            return
        for code in pull.message_filter.tags_codes:
            del self._by_code[code][pull]
            if not self._by_code[code]:
                del self._by_code[code]
        pull.offset = max(pull.offset, self.checked_until)

    def wanted(self, max_offset: int, tags_codes: Collection[int] | None) -> list[HeldPull]:
        """Returns the pulls that match one of the tags codes, or all pulls if `tags_codes` is None."""
        if tags_codes is None:
            found = list(dict.fromkeys(self._all()))
        else:
            by_tag = (pull for code in tags_codes for pull in self._by_code.get(code, ()))
            found = [*self._any, *dict.fromkeys(by_tag)]
        return [pull for pull in found if pull.offset < max_offset]

    def _all(self) -> Iterator[HeldPull]:
        yield from self._any
        for pulls in self._by_code.values():
            yield from pulls
