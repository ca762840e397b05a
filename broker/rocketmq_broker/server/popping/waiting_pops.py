"""Keeps pops that found no messages until messages arrive or their timeout expires (RocketMQ's PopLongPollingService)."""

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from rocketmq_broker.server.clients.message_filters import MessageFilter
from rocketmq_broker.server.popping.errors import TooManyPops
from rocketmq_broker.server.popping.popped import Popped
from rocketmq_broker.server.shares import is_full

MAX_WAITING: Final = 100_000
"""The maximum number of waiting pops (RocketMQ's maxPopPollingSize)."""
MAX_OF_AN_OWNER: Final = 8_192
MAX_EXPRESSIONS_LENGTH: Final = 1 << 20
"""The maximum length, in characters, of all filter expressions of an owner's waiting pops together."""
MAX_POLL_MS: Final = 120_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PopRequest:
    """The parameters of a pop."""

    group: str
    topic: str
    queue_id: int
    """The queue to pop from; -1 means all queues."""
    max_messages: int
    invisible_ms: int
    message_filter: MessageFilter
    is_ordered: bool = False
    attempt_id: str | None = None
    begins_at_end: bool = True
    is_notification: bool = False
    """True if the request only checks whether there are messages (NOTIFICATION)."""


@dataclass(slots=True, eq=False)
class WaitingPop:
    """A pop that waits for messages."""

    request: PopRequest
    topics: tuple[bytes, ...]
    """The topics whose new messages can end the wait."""
    deadline_ms: int
    deliver: Callable[[Popped | None], None]
    """A function that is called once: with messages, or with None after the timeout."""
    owner: object = None
    """The caller that waits, for example the client's connection. Limits apply to each owner separately."""
    is_over: bool = field(default=False, init=False)


class WaitingPops:
    """The waiting pops in the order of their arrival. They can be found by topic and by deadline."""

    def __init__(self) -> None:
        self._by_topic: dict[bytes, dict[WaitingPop, None]] = {}
        self._deadlines: list[tuple[int, int, WaitingPop]] = []
        self._of_owner: Counter[object] = Counter()
        self._expression_lengths: Counter[object] = Counter()
        self._number = 0
        self.count = 0

    def hold(self, pop: WaitingPop) -> None:
        """Adds a pop. Raises TooManyPops if a limit is reached."""
        of_owner = self._of_owner[pop.owner]
        if of_owner >= MAX_OF_AN_OWNER or is_full(self.count, MAX_WAITING, of_owner):
            raise TooManyPops(f"too many waiting pops: {of_owner} from this client, {self.count} from all clients")
        expression_length = pop.request.message_filter.expression_length
        if self._expression_lengths[pop.owner] + expression_length > MAX_EXPRESSIONS_LENGTH:
            raise TooManyPops(f"filter expressions of this client's waiting pops exceed {MAX_EXPRESSIONS_LENGTH} characters")
        self._expression_lengths[pop.owner] += expression_length
        for topic in pop.topics:
            self._by_topic.setdefault(topic, {})[pop] = None
        self._of_owner[pop.owner] += 1
        self.count += 1
        self._number += 1
        heapq.heappush(self._deadlines, (pop.deadline_ms, self._number, pop))
        if len(self._deadlines) > 2 * self.count + 1000:
            self._deadlines = [entry for entry in self._deadlines if not entry[2].is_over]
            heapq.heapify(self._deadlines)

    def remove(self, pop: WaitingPop) -> None:
        """Removes a pop that received messages or was abandoned."""
        if pop.is_over:
            return
        pop.is_over = True
        self.count -= 1
        self._of_owner[pop.owner] -= 1
        self._expression_lengths[pop.owner] -= pop.request.message_filter.expression_length
        if not self._of_owner[pop.owner]:
            del self._of_owner[pop.owner], self._expression_lengths[pop.owner]
        for topic in pop.topics:
            del self._by_topic[topic][pop]
            if not self._by_topic[topic]:
                del self._by_topic[topic]

    def has(self, topic: bytes) -> bool:
        """Returns True if a pop waits for messages of the topic."""
        return topic in self._by_topic

    def of(self, topic: bytes) -> list[WaitingPop]:
        """Returns the pops that wait for messages of the topic."""
        return list(self._by_topic.get(topic, ()))

    def take_due(self, now_ms: int) -> list[WaitingPop]:
        """Removes and returns the pops whose deadline has passed."""
        due = []
        while self._deadlines and (self._deadlines[0][2].is_over or self._deadlines[0][0] <= now_ms):
            pop = heapq.heappop(self._deadlines)[2]
            if not pop.is_over:
                self.remove(pop)
                due.append(pop)
        return due

    def next_due_ms(self) -> int | None:
        """Returns the next deadline, or an earlier time, in monotonic milliseconds. Returns None if no pop is waiting."""
        return self._deadlines[0][0] if self._deadlines else None

    def forget(self, owner: object) -> None:
        """Removes the pops of an owner, such as a closed connection."""
        if owner in self._of_owner:
            for pop in [pop for _, _, pop in self._deadlines if pop.owner is owner]:
                self.remove(pop)
