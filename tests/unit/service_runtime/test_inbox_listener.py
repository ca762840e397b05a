import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import pytest

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, MessagesWithdrawn
from rocketmq_broker.message import MessageExt, MessageQueue
from rocketmq_broker.message.record import Record, to_message
from rocketmq_broker.world import World
from service_runtime.database.database_errors import DatabaseUnavailable, OutcomeUnknown
from service_runtime.inbox.inbox_listener import DEAD_LETTERS_AT_ONCE, BatchedStore, InboxListener

PATIENCE_S = 60.0


class Unreadable(Exception):
    pass


def a_message(number: int, body: bytes = b"{}") -> MessageExt:
    properties = f"UNIQ_KEY\x01id-{number}".encode()
    return to_message(Record(0, 0, 0, 0, number, 0, 0, 0, bytes(8), 0, bytes(8), 0, 0, body, b"orders", properties))


def read(message: MessageExt) -> object:
    if message.body == b"{":
        raise Unreadable("its body ends too early")
    return message


@dataclass(slots=True)
class Inbox:
    """An inbox that stores messages after it has raised the given errors."""

    errors: list[Exception] = field(default_factory=list)
    stored: list[list[str]] = field(default_factory=list)
    events: list[str] = field(default_factory=list)

    def store(self, messages: Sequence[MessageExt]) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.stored.append([message.message_id for message in messages])
        self.events.append("stored")

    def ring(self) -> None:
        self.events.append("rung")


@dataclass(slots=True)
class Pauses:
    seconds: list[float] = field(default_factory=list)
    is_withdrawn: bool = False

    def __call__(self, _: ConsumeContext, seconds: float) -> None:
        self.seconds.append(seconds)
        if self.is_withdrawn:
            raise MessagesWithdrawn


def a_listener(inbox: Inbox, pauses: Pauses) -> InboxListener:
    return InboxListener(read=read, unreadable=Unreadable, store=inbox.store, ring=inbox.ring, hold=pauses)


def a_context() -> ConsumeContext:
    return ConsumeContext(MessageQueue("orders", "broker-a", 0))


def test_messages_are_stored_together_and_acknowledged_and_then_the_bell_is_rung() -> None:
    inbox, pauses = Inbox(), Pauses()
    assert a_listener(inbox, pauses)([a_message(1), a_message(2)], a_context()) is ConsumeStatus.CONSUME_SUCCESS
    assert (inbox.stored, inbox.events, pauses.seconds) == ([["id-1", "id-2"]], ["stored", "rung"], [])


def test_a_database_that_is_away_costs_time_and_no_redelivery() -> None:
    inbox, pauses = Inbox([DatabaseUnavailable("away"), OutcomeUnknown("away"), DatabaseUnavailable("away")]), Pauses()
    context = a_context()
    assert a_listener(inbox, pauses)([a_message(1)], context) is ConsumeStatus.CONSUME_SUCCESS
    assert (inbox.stored, pauses.seconds, context.postponed) == ([["id-1"]], [0.5, 1, 2], {})


def test_messages_that_are_withdrawn_while_they_are_held_are_not_acknowledged() -> None:
    inbox, pauses = Inbox([DatabaseUnavailable("away")]), Pauses(is_withdrawn=True)
    with pytest.raises(MessagesWithdrawn):
        a_listener(inbox, pauses)([a_message(1)], a_context())
    assert inbox.events == []


def test_a_mistake_of_ours_is_not_taken_for_an_outage() -> None:
    pauses = Pauses()
    with pytest.raises(ZeroDivisionError):
        a_listener(Inbox([ZeroDivisionError()]), pauses)([a_message(1)], a_context())
    assert pauses.seconds == []


def test_an_unreadable_message_becomes_a_dead_letter_and_the_others_are_stored() -> None:
    inbox, context = Inbox(), a_context()
    messages = [a_message(0), a_message(1, b"{"), a_message(2)]
    assert a_listener(inbox, Pauses())(messages, context) is ConsumeStatus.CONSUME_SUCCESS
    assert (inbox.stored, context.postponed) == ([["id-0", "id-2"]], {1: DEAD_LETTERS_AT_ONCE})


def test_unreadable_messages_alone_store_nothing_and_ring_no_bell() -> None:
    inbox, context = Inbox(), a_context()
    assert a_listener(inbox, Pauses())([a_message(0, b"{")], context) is ConsumeStatus.CONSUME_SUCCESS
    assert (inbox.events, context.postponed) == ([], {0: DEAD_LETTERS_AT_ONCE})


class Waits:
    """The waits and pauses of a test's threads. A pause only advances the clock."""

    def __init__(self) -> None:
        self.begun: queue.Queue[None] = queue.Queue()
        self.freed = threading.Event()
        self.now_ns = 0
        self.pauses_ms: list[int] = []

    def acquire(self, try_it: Callable[[], bool], _timeout_s: float) -> bool:
        self.begun.put(None)
        while not try_it():
            self.freed.wait(PATIENCE_S)
        return True

    def sleep(self, seconds: float) -> None:
        self.pauses_ms.append(round(seconds * 1000))
        self.now_ns += round(seconds * 1e9)

    @property
    def world(self) -> World:
        return replace(World(), acquire=self.acquire, sleep=self.sleep, steady_ns=lambda: self.now_ns)


@dataclass(slots=True)
class SlowStore:
    """A store of messages. The first call waits until the test releases it, and the second call raises the error."""

    error: BaseException | None = None
    has_begun: threading.Event = field(default_factory=threading.Event)
    may_end: threading.Event = field(default_factory=threading.Event)
    stored: list[list[str]] = field(default_factory=list)

    def __call__(self, messages: Sequence[MessageExt]) -> None:
        if not self.stored:
            self.has_begun.set()
            assert self.may_end.wait(PATIENCE_S)
        elif self.error is not None:
            raise self.error
        self.stored.append(sorted(message.message_id for message in messages))


def stored_by_three_threads(store: SlowStore) -> list[Future[None]]:
    """Stores a message from each of three threads. The last two wait while the first one stores."""
    waits = Waits()
    commit = BatchedStore(store, waits.world)
    with ThreadPoolExecutor(3) as threads:
        futures = []
        for number in range(1, 4):
            futures.append(threads.submit(commit, [a_message(number)]))
            waits.begun.get(timeout=PATIENCE_S)
            assert store.has_begun.wait(PATIENCE_S)
        store.may_end.set()
        waits.freed.set()
    return futures


def test_messages_that_arrive_while_others_are_stored_are_stored_together() -> None:
    store = SlowStore()
    for future in stored_by_three_threads(store):
        future.result()
    assert store.stored == [["id-1"], ["id-2", "id-3"]]


def test_an_error_reaches_all_threads_whose_messages_it_concerns_and_no_other() -> None:
    first, second, third = stored_by_three_threads(SlowStore(DatabaseUnavailable("away")))
    first.result()
    for future in (second, third):
        with pytest.raises(DatabaseUnavailable, match="away"):
            future.result()


def test_the_pause_after_a_transaction_grows_with_its_messages() -> None:
    waits, inbox = Waits(), Inbox()
    commit = BatchedStore(inbox.store, waits.world)
    for number_of_messages in (1, 10, 100, 1):
        commit([a_message(number) for number in range(number_of_messages)])
    assert waits.pauses_ms == [0, 20, 80, 100]
    waits.now_ns += 10**9
    commit([a_message(1)])
    assert waits.pauses_ms[-1] == 0


def test_a_message_that_cannot_be_stored_affects_no_other_thread() -> None:
    class Picky(SlowStore):
        def __call__(self, messages: Sequence[MessageExt]) -> None:
            self.error = DatabaseUnavailable("no") if any(message.message_id == "id-2" for message in messages) else None
            super().__call__(messages)

    store = Picky()
    first, second, third = stored_by_three_threads(store)
    first.result()
    third.result()
    with pytest.raises(DatabaseUnavailable, match="no"):
        second.result()
    assert store.stored == [["id-1"], ["id-3"]]


def test_a_thread_that_is_interrupted_while_it_stores_for_others_lets_them_go_on() -> None:
    futures = stored_by_three_threads(SlowStore(KeyboardInterrupt()))
    assert sorted(type(future.exception()).__name__ for future in futures[1:]) == ["DatabaseUnavailable", "KeyboardInterrupt"]


def test_a_thread_stores_alone_when_another_call_hangs() -> None:
    inbox = Inbox()
    commit = BatchedStore(inbox.store, replace(World(), acquire=lambda _try_it, _timeout_s: False))
    commit([a_message(1)])
    assert inbox.stored == [["id-1"]]


def test_a_thread_whose_messages_are_stored_by_a_hanging_call_reports_an_unavailable_database() -> None:
    def is_taken_by_another(_try_it: Callable[[], bool], _timeout_s: float) -> bool:
        commit._waiting.popleft()[1].set_running_or_notify_cancel()
        return False

    inbox = Inbox()
    commit = BatchedStore(inbox.store, replace(World(), acquire=is_taken_by_another))
    with pytest.raises(DatabaseUnavailable, match="the messages were not stored within 60 s"):
        commit([a_message(1)])
    assert inbox.stored == []
