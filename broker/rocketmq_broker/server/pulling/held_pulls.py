"""Held pulls: each found nothing, and waits for a message or for its time-out (RocketMQ's PullRequestHoldService)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TypeVar

from rocketmq_broker.protocol.command import ReplyTo
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.server.clients.message_filters import MessageFilter

_Key = TypeVar("_Key")

DEADLINE_STEP_MS = 100
"""Deadlines are rounded up to this, so that one step's pulls are found together."""

HELD_PER_CONNECTION = 8192
"""A connection that wants to have more held gets its answers at once."""

EXPRESSIONS_PER_CONNECTION = 1 << 20
"""Characters of all expressions by which the held pulls of a connection filter; with more it gets its answers at once, too."""


@dataclass(slots=True, eq=False)
class HeldPull:
    """A held pull, with its parameters for another try."""

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
    """The held pulls by queue, by deadline and by connection. Each is taken once, by the first of these."""

    def __init__(self) -> None:
        self._by_queue: dict[tuple[bytes, int], WaitingPulls] = {}
        self._by_deadline: dict[int, dict[HeldPull, None]] = {}
        self._by_connection: dict[Connection, dict[HeldPull, None]] = {}
        self._expression_lengths: Counter[Connection] = Counter()

    def __len__(self) -> int:
        return sum(map(len, self._by_connection.values()))

    def hold(self, pull: HeldPull) -> bool:
        """Adds the pull; returns False if its connection holds too many already."""
        if not self._has_room_for(pull):
            return False
        if pull.message_filter.expression_length:
            self._expression_lengths[pull.connection] += pull.message_filter.expression_length
        self._by_connection.setdefault(pull.connection, {})[pull] = None
        queue = pull.topic, pull.queue_id
        if queue not in self._by_queue:
            self._by_queue[queue] = WaitingPulls(looked_at_until=pull.offset)
        self._by_queue[queue].add(pull)
        self._by_deadline.setdefault(_step(pull.deadline_ms), {})[pull] = None
        return True

    def looked_at_until(self, topic: bytes, queue_id: int) -> int | None:
        """Returns the queue offset of the first message that pulls with tags have not looked at; None without such pulls."""
        waiting = self._by_queue.get((topic, queue_id))
        return waiting.looked_at_until if waiting is not None and waiting.is_by_tag else None

    def take_arrived(
        self, topic: bytes, queue_id: int, max_offset: int, tags_codes: Collection[int] | None = None
    ) -> list[HeldPull]:
        """Takes the pulls that a queue with this max offset has new messages for.

        `tags_codes` are those of all its messages since `looked_at_until`. Without them each pull has to look for itself.
        """
        waiting = self._by_queue.get((topic, queue_id))
        if waiting is None:
            return []
        arrived = waiting.wanted(max_offset, tags_codes)
        for pull in arrived:
            self._remove(pull)
        if tags_codes is not None:
            waiting.looked_at_until = max(waiting.looked_at_until, max_offset)
        return arrived

    def take_due(self, now_ms: int) -> list[HeldPull]:
        """Takes the pulls whose time is up."""
        due = [pull for step in [step for step in self._by_deadline if step <= now_ms] for pull in self._by_deadline[step]]
        for pull in due:
            self._remove(pull)
        return due

    def next_due_ms(self) -> int | None:
        """Returns the next deadline of a pull; None without pulls."""
        return min(self._by_deadline, default=None)

    def forget(self, connection: Connection) -> None:
        """Forgets the pulls of a connection."""
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
    """Pulls at one queue, by the tags codes they want. Each message wakes the pulls for all messages or by an expression."""

    def __init__(self, looked_at_until: int) -> None:
        self.looked_at_until = looked_at_until
        """Queue offset. Whoever waits by tag wants no message before it: they were looked at when they arrived."""
        self._any: dict[HeldPull, None] = {}
        self._by_code: dict[int, dict[HeldPull, None]] = {}

    def __len__(self) -> int:
        return len(set(self._all()))

    def __bool__(self) -> bool:
        return bool(self._any or self._by_code)

    @property
    def is_by_tag(self) -> bool:
        """True if pulls wait for messages with certain tags."""
        return bool(self._by_code)

    def add(self, pull: HeldPull) -> None:
        """Adds a pull."""
        if pull.message_filter.tags_codes is None:
            self._any[pull] = None
        else:
            for code in pull.message_filter.tags_codes:
                self._by_code.setdefault(code, {})[pull] = None

    def remove(self, pull: HeldPull) -> None:
        """Removes a pull, and moves its offset behind the messages already looked at for it."""
        if pull.message_filter.tags_codes is None:
            del self._any[pull]
            return
        for code in pull.message_filter.tags_codes:
            del self._by_code[code][pull]
            if not self._by_code[code]:
                del self._by_code[code]
        pull.offset = max(pull.offset, self.looked_at_until)

    def wanted(self, max_offset: int, tags_codes: Collection[int] | None) -> list[HeldPull]:
        """Returns the pulls that want a message with one of these tags codes; all pulls if the codes are unknown."""
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
