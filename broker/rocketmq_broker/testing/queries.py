"""Queries about transactions and messages, for tests. AssertionErrors include the timeline of the message."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator
from operator import methodcaller
from typing import Any, Final, Generic, NoReturn, TypeVar

from rocketmq_broker.message import MessageExt
from rocketmq_broker.testing.journal import Journal
from rocketmq_broker.testing.transactions import COMMITTED, PENDING, ROLLED_BACK, Inspection, Transaction
from rocketmq_broker.testing.virtual_time import VirtualTime

T = TypeVar("T")

IS_ASSERTION: Final = methodcaller("errisinstance", AssertionError)
"""A traceback filter for pytest. A module assigns it to `__tracebackhide__` to hide its own lines from AssertionErrors."""


class Query(Awaitable[T], Generic[T]):
    """A query about the broker. Awaiting the query waits until the broker is idle, and returns the result."""

    def __init__(self, call: str, answer: Callable[[], Awaitable[T]]) -> None:
        """Creates a query. `call` is the call's source code, for errors. `answer` computes the result of the query."""
        self._call = call
        self._answer = answer

    def __await__(self) -> Generator[Any, None, T]:
        """Waits until the broker is idle, and returns the query's result."""
        return self._answer().__await__()

    def __bool__(self) -> NoReturn:
        """Raises TypeError, because a query must be awaited to get its result."""
        raise TypeError(f"missing await: write `await rocketmq.{self._call}`")

    def __repr__(self) -> str:
        """Returns the source code of the call, with a note that it is not awaited."""
        return f"<{self._call}, not awaited>"


__tracebackhide__ = IS_ASSERTION
MOMENT_S: Final = 0.01
"""The time in seconds by which a query advances the clock. It is longer than any batching delay, such as a COMMIT's flush."""


class Queries(ABC):
    """The awaitable queries of a test."""

    time: VirtualTime
    journal: Journal

    @abstractmethod
    def inspection(self) -> Inspection:
        """Returns an object that reads the running broker's state, without a connection. Raises RuntimeError if none runs."""

    def pending(self, word: str | None = None) -> Query[list[Transaction]]:
        """Queries the undecided transactions, or only those with the id or key `word`."""
        return self._query(
            f"pending({_argument(word)})",
            lambda inspection: [one for one in inspection.pending() if word is None or one.is_named(word)],
        )

    def decided(self, word: str | None = None) -> Query[list[Transaction]]:
        """Queries the committed, rolled back and discarded transactions, or only those with the id or key `word`."""
        return self._query(
            f"decided({_argument(word)})",
            lambda inspection: [
                one for one in inspection.transactions() if one.state != PENDING and (word is None or one.is_named(word))
            ],
        )

    def messages(self, topic: str) -> Query[list[MessageExt]]:
        """Queries the messages of the topic that are visible to consumers, in the order in which they were stored."""
        return self._query(f"messages({topic!r})", lambda inspection: inspection.messages(topic))

    def committed(self, word: str) -> Query[MessageExt]:
        """Queries the visible message of the committed transaction with the id or key `word`.

        Raises AssertionError with the message's timeline unless exactly one message matches.
        """
        return self._query(f"committed({word!r})", lambda inspection: self._committed(inspection, word))

    def rolled_back(self, word: str) -> Query[Transaction]:
        """Queries the transaction with the id or key `word`. Raises AssertionError unless it is rolled back."""
        return self._query(f"rolled_back({word!r})", lambda inspection: self._in_state(inspection, word, ROLLED_BACK))

    def timeline(self, word: str) -> str:
        """Returns the timeline of the message with the id or key `word`: its sends, decisions, check-backs and deliveries."""
        events = self.journal.of(word)
        if not events:
            return f"no events of {word!r}"
        return f"the story of {word!r}, in minutes of the test:\n" + "\n".join(map(str, events))

    def story(self) -> str:
        """Returns the latest hundred events with their times."""
        return "what happened, in minutes of the test:\n" + self.journal.format(self.journal.events[-100:])

    def _query(self, call: str, answer: Callable[[Inspection], T]) -> Query[T]:
        async def when_settled() -> T:
            await self.time.advance(MOMENT_S)
            return answer(self.inspection())

        return Query(call, when_settled)

    def _committed(self, inspection: Inspection, word: str) -> MessageExt:
        transaction = self._in_state(inspection, word, COMMITTED)
        found = [one for one in inspection.messages(transaction.topic) if word in (one.transaction_id, *one.keys)]
        if len(found) != 1:
            raise AssertionError(
                f"{word!r} is committed, but {transaction.topic} contains it {len(found)} times\n{self.timeline(word)}"
            )
        return found[0]

    def _in_state(self, inspection: Inspection, word: str, state: str) -> Transaction:
        found = [one for one in inspection.transactions() if one.is_named(word)]
        if len(found) == 1 and found[0].state == state:
            return found[0]
        states = " and ".join(one.state for one in found) if found else "unknown to the broker"
        raise AssertionError(f"{word!r} is {states}, not {state}\n{self.timeline(word)}")


def _argument(word: str | None) -> str:
    return "" if word is None else repr(word)
