"""A test's questions about transactions and messages, and the story of each, which an AssertionError tells as well."""

from __future__ import annotations

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
"""As `__tracebackhide__` of a module: pytest shows the line of the test that failed, and none of the module's own lines."""


class Asked(Awaitable[T], Generic[T]):
    """The answer to a question about the broker. Awaiting it waits until the broker is idle."""

    def __init__(self, question: str, answer: Callable[[], Awaitable[T]]) -> None:
        """`question` is the call's text; awaiting calls `answer`."""
        self._question = question
        self._answer = answer

    def __await__(self) -> Generator[Any, None, T]:
        """Returns the answer."""
        return self._answer().__await__()

    def __bool__(self) -> NoReturn:
        """Raises TypeError: an answer without `await` is neither true nor false."""
        raise TypeError(f"{self._question} is a question: write `await rocketmq.{self._question}`")

    def __repr__(self) -> str:
        """Shows the call."""
        return f"<{self._question}, not awaited>"


__tracebackhide__ = IS_ASSERTION
MOMENT_S: Final = 0.01
"""Longer than any delay that only combines work, such as the flush of a COMMIT."""


class Questions(ABC):
    """Questions whose answers are awaited, and come once the broker is idle."""

    time: VirtualTime
    journal: Journal

    @abstractmethod
    def _inspection(self) -> Inspection:
        """Returns the view of the running broker. Raises RuntimeError without one."""

    def pending(self, word: str | None = None) -> Asked[list[Transaction]]:
        """Asks for the undecided transactions; with a word, for those with that id or key."""
        return self._asked(
            f"pending({_argument(word)})",
            lambda inspection: [one for one in inspection.pending() if word is None or one.is_named(word)],
        )

    def decided(self, word: str | None = None) -> Asked[list[Transaction]]:
        """Asks for the transactions that are committed, rolled back or discarded; with a word, for those with that id or key."""
        return self._asked(
            f"decided({_argument(word)})",
            lambda inspection: [
                one for one in inspection.transactions() if one.state != PENDING and (word is None or one.is_named(word))
            ],
        )

    def messages(self, topic: str) -> Asked[list[MessageExt]]:
        """Asks for the messages that consumers of the topic find, in the order of storing."""
        return self._asked(f"messages({topic!r})", lambda inspection: inspection.messages(topic))

    def committed(self, word: str) -> Asked[MessageExt]:
        """Asks for the message of the transaction with that id or key, visible to consumers.

        Raises AssertionError with the story, unless there is exactly one.
        """
        return self._asked(f"committed({word!r})", lambda inspection: self._committed(inspection, word))

    def rolled_back(self, word: str) -> Asked[Transaction]:
        """Asks for the transaction with that id or key. Raises AssertionError unless it is rolled back."""
        return self._asked(f"rolled_back({word!r})", lambda inspection: self._in_state(inspection, word, ROLLED_BACK))

    def timeline(self, word: str) -> str:
        """Returns the story of the message with that id or key: sends, decisions, checks and deliveries with their times."""
        events = self.journal.of(word)
        if not events:
            return f"nothing is known of {word!r}"
        return f"the story of {word!r}, in minutes of the test:\n" + "\n".join(map(str, events))

    def story(self) -> str:
        """Returns the story of the latest hundred events."""
        return "what happened, in minutes of the test:\n" + self.journal.told(self.journal.events[-100:])

    def _asked(self, question: str, answer: Callable[[Inspection], T]) -> Asked[T]:
        async def when_settled() -> T:
            await self.time.advance(MOMENT_S)
            return answer(self._inspection())

        return Asked(question, when_settled)

    def _committed(self, inspection: Inspection, word: str) -> MessageExt:
        transaction = self._in_state(inspection, word, COMMITTED)
        found = [one for one in inspection.messages(transaction.topic) if word in (one.transaction_id, *one.keys)]
        if len(found) != 1:
            raise AssertionError(
                f"{word!r} is committed, and {transaction.topic} has it {len(found)} times\n{self.timeline(word)}"
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
