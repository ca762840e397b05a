"""Plays a scripted history on both brokers. The result has one timeline, a row for each check(), and the totals."""

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Final, NamedTuple

from msgspec.structs import replace

from rocketmq_broker.admin.replay.apache_check import ApacheHalf, ApacheQueues, CheckPass
from rocketmq_broker.admin.replay.our_check import OurTransactions
from rocketmq_broker.admin.replay.script import COMMIT, UNKNOWN, CheckHistory, ScriptedTransaction
from rocketmq_broker.admin.timeline.event import BROKER, BROKER_MEMORY, COMMIT_LOG, Arrow, Event, in_order
from rocketmq_broker.admin.timeline.folding import WRITTEN_AGAIN, folded
from rocketmq_broker.transaction.decision import CheckAction

APACHE: Final = "Apache's broker"
PRODUCER: Final = "producer"
OURS: Final = "this broker"
LANES: Final = (APACHE, PRODUCER, OURS)
"""The participants of the diagram, from left to right."""
ANSWER_MS: Final = 10
"""The time until a producer's answer to a check-back arrives."""


class SideTotals(NamedTuple):
    """The totals of the messages that a broker has stored and sent."""

    halves: int
    """The number of messages in the half topic."""
    ops: int
    check_backs: int
    deliveries: int
    """How often consumers receive the messages."""
    discarded: int


class ReplayRow(NamedTuple):
    """One check() of Apache's broker, and what this broker has stored and sent at that time."""

    apache: CheckPass
    ours: SideTotals


@dataclass(frozen=True, slots=True)
class Replay:
    """The result of playing a history on both brokers."""

    history: CheckHistory
    events: list[Event]
    """The events of both brokers, in order of time, which begins at 0. Long rows of check-backs are folded."""
    rows: list[ReplayRow]
    """A row for each check() of Apache's broker that read or wrote something."""
    apache: SideTotals
    ours: SideTotals
    half_topic: list[ApacheHalf]
    """The messages of Apache's half topic at the end."""
    op_topic: list[int]
    """The offset in the half topic that each message of Apache's op topic names."""

    @property
    def begun_ms(self) -> int:
        """The time of the first half message."""
        return min(transaction.sent_ms for transaction in self.history.transactions)


def replay(history: CheckHistory) -> Replay:
    """Plays a history on both brokers. The result depends only on the history."""
    apache, ours = _ApacheSide(history), _OurSide(history)
    apache.play()
    ours.play()
    return Replay(
        history=history,
        events=in_order([*_named(folded(apache.events), APACHE), *_named(folded(ours.events), OURS)]),
        rows=[ReplayRow(one, ours.totals_at(one.at_ms)) for one in apache.passes if not one.is_idle],
        apache=apache.totals(),
        ours=ours.totals(),
        half_topic=apache.queues.halves,
        op_topic=apache.queues.ops,
    )


def _named(events: Iterable[Event], broker: str) -> list[Event]:
    """Returns the events with the broker's name as the participant."""
    return [
        event
        if event.arrow is None
        else replace(
            event,
            arrow=replace(
                event.arrow,
                sender=broker if event.arrow.sender == BROKER else event.arrow.sender,
                receiver=broker if event.arrow.receiver == BROKER else event.arrow.receiver,
            ),
        )
        for event in events
    ]


class _Side(ABC):
    """A broker and its producer, which both follow the script of a history."""

    def __init__(self, history: CheckHistory) -> None:
        self._history = history
        self._agenda: list[tuple[int, int, Callable[[int], None]]] = []
        self._order = count()
        self.events: list[Event] = []
        self.check_backs = self.deliveries = self.discarded = 0

    def play(self) -> None:
        """Plays the whole history."""
        for transaction in self._history.transactions:
            self._at(transaction.sent_ms, partial(self._send, transaction))
        while True:
            look_ms = self._next_look_ms()
            is_look = look_ms is not None and (not self._agenda or look_ms < self._agenda[0][0])
            now_ms = look_ms if is_look else self._agenda[0][0] if self._agenda else None
            if now_ms is None or now_ms > self._history.until_ms:
                return
            if is_look:
                self._look(now_ms)
            else:
                heapq.heappop(self._agenda)[2](now_ms)

    @abstractmethod
    def totals(self) -> SideTotals:
        """Returns what the broker has stored and sent so far."""

    @abstractmethod
    def _next_look_ms(self) -> int | None:
        """Returns the time of the broker's next check; None if it has nothing to check."""

    @abstractmethod
    def _look(self, now_ms: int) -> None:
        """Runs the broker's check of its transactions."""

    @abstractmethod
    def _prepare(self, transaction: ScriptedTransaction, now_ms: int) -> int:
        """Stores the half message. Returns its offset in the half topic."""

    @abstractmethod
    def _end(self, transaction: ScriptedTransaction, half_offset: int, decision: str) -> str:
        """Handles a COMMIT or ROLLBACK for the half message at that offset. Returns the effect."""

    def _at(self, at_ms: int, deed: Callable[[int], None]) -> None:
        heapq.heappush(self._agenda, (at_ms, next(self._order), deed))

    def _note(self, at_ms: int, what: str, arrow: Arrow, on_record: str = COMMIT_LOG) -> None:
        self.events.append(Event(at_ms, what, on_record, arrow))

    def _send(self, transaction: ScriptedTransaction, now_ms: int) -> None:
        offset = self._prepare(transaction, now_ms)
        name = transaction.name
        what = f"half message of {name} stored at offset {offset} of the half topic"
        self._note(now_ms, what, Arrow(PRODUCER, BROKER, f"half message {name}"))
        if transaction.decision is not None:
            self._at(transaction.decided_ms, partial(self._decide, transaction, offset, transaction.decision))

    def _ask(self, transaction: ScriptedTransaction, half_offset: int, number: int, now_ms: int) -> None:
        self.check_backs += 1
        what = f"check-back {number}: the broker asks the producer about {transaction.name}"
        self._note(now_ms, what, Arrow(BROKER, PRODUCER, f"check-back {number}"), BROKER_MEMORY)
        self._at(now_ms + ANSWER_MS, partial(self._decide, transaction, half_offset, transaction.answer(number)))

    def _decide(self, transaction: ScriptedTransaction, half_offset: int, decision: str, now_ms: int) -> None:
        if decision == UNKNOWN:
            what = f"the producer answers UNKNOWN about {transaction.name}"
            self._note(now_ms, what, Arrow(PRODUCER, BROKER, UNKNOWN), BROKER_MEMORY)
            return
        what = f"{decision} of {transaction.name}: {self._end(transaction, half_offset, decision)}"
        self._note(now_ms, what, Arrow(PRODUCER, BROKER, f"{decision} {transaction.name}"))

    def _discard(self, transaction: ScriptedTransaction, checks: int, now_ms: int) -> None:
        self.discarded += 1
        what = f"{transaction.name} discarded with a count of {checks}: moved to TRANS_CHECK_MAX_TIME_TOPIC"
        self._note(now_ms, what, Arrow(BROKER, BROKER, "discarded"))


class _ApacheSide(_Side):
    """The side of Apache's broker, which calls check() at each interval."""

    def __init__(self, history: CheckHistory) -> None:
        super().__init__(history)
        self.queues = ApacheQueues(history.policy)
        self._by_name = {transaction.name: transaction for transaction in history.transactions}
        self._delivered: set[str] = set()
        self.passes: list[CheckPass] = []

    def totals(self) -> SideTotals:
        halves, ops = len(self.queues.halves), len(self.queues.ops)
        return SideTotals(halves, ops, self.check_backs, self.deliveries, self.discarded)

    def _next_look_ms(self) -> int | None:
        return (len(self.passes) + 1) * self._history.policy.check_interval_ms

    def _look(self, now_ms: int) -> None:
        done = self.queues.check(now_ms)
        self.passes.append(done)
        for name in done.discarded:
            self._discard(self._by_name[name], self._history.policy.check_max, now_ms)
        for name, offset, copy_offset, checks, is_asked in done.put_back:
            why = "" if is_asked else ", although it is immune and no one is asked"
            what = f"half message of {name} written again: offset {offset} is copied to {copy_offset}, count {checks}{why}"
            self._note(now_ms, what, Arrow(BROKER, BROKER, WRITTEN_AGAIN))
            if is_asked:
                self._ask(self._by_name[name], copy_offset, checks, now_ms)

    def _prepare(self, transaction: ScriptedTransaction, now_ms: int) -> int:
        return self.queues.prepare(ApacheHalf(transaction.name, now_ms, now_ms, immunity_s=transaction.immunity_s))

    def _end(self, transaction: ScriptedTransaction, half_offset: int, decision: str) -> str:
        op = self.queues.end(half_offset)
        effect = f"op message {op} names half message {half_offset}"
        if decision != COMMIT:
            return f"{effect}, and nothing is delivered"
        self.deliveries += 1
        again = " again" if transaction.name in self._delivered else ""
        self._delivered.add(transaction.name)
        return f"{effect}, and the message is delivered{again}"


class _OurSide(_Side):
    """The side of this broker, which handles each transaction when it is due."""

    def __init__(self, history: CheckHistory) -> None:
        super().__init__(history)
        self._pending = OurTransactions(history.policy)
        self._by_offset: dict[int, ScriptedTransaction] = {}
        self._totals: list[tuple[int, SideTotals]] = []

    def totals(self) -> SideTotals:
        halves, ops = self._pending.halves, self._pending.ops
        return SideTotals(halves, ops, self.check_backs, self.deliveries, self.discarded)

    def totals_at(self, at_ms: int) -> SideTotals:
        """Returns what the broker had stored and sent at that time."""
        return next((totals for then_ms, totals in reversed(self._totals) if then_ms <= at_ms), SideTotals(0, 0, 0, 0, 0))

    def _note(self, at_ms: int, what: str, arrow: Arrow, on_record: str = COMMIT_LOG) -> None:
        super()._note(at_ms, what, arrow, on_record)
        self._totals.append((at_ms, self.totals()))

    def _next_look_ms(self) -> int | None:
        return self._pending.table.due_times.next_ms()

    def _look(self, now_ms: int) -> None:
        for offset, action, checks in self._pending.check(now_ms):
            transaction = self._by_offset[offset]
            if action is CheckAction.CHECK_BACK:
                self._ask(transaction, offset, checks, now_ms)
            else:
                self._discard(transaction, checks, now_ms)

    def _prepare(self, transaction: ScriptedTransaction, now_ms: int) -> int:
        offset = self._pending.prepare(now_ms, transaction.immunity_s)
        self._by_offset[offset] = transaction
        return offset

    def _end(self, transaction: ScriptedTransaction, half_offset: int, decision: str) -> str:
        ended = self._pending.end(half_offset, decision)
        if ended.transaction is None:
            return f"refused, {ended.remark}"
        effect = f"op message {self._pending.ops - 1} names half message {half_offset}"
        if decision != COMMIT:
            return f"{effect}, and nothing is delivered"
        self.deliveries += 1
        return f"{effect}, and the message is delivered"
