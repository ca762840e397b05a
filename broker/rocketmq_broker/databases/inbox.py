"""The inbox: messages that wait in a table of the consumer's own database until they are processed.

A consumer stores each message in the table `rocketmq_inbox` and acknowledges it. A worker removes messages from the
table and processes them in one database transaction. Therefore, the consumer does not wait for a worker, and a
message that fails does not delay others. After a crash, each message is either in the table or processed. An inbox
is the counterpart of a transactional outbox (https://microservices.io/patterns/data/transactional-outbox.html).

    def consume(messages, context):                  # in the consumer
        inbox.put(messages)
        return ConsumeStatus.CONSUME_SUCCESS

    def credit(session, messages):                   # in the worker
        for message in messages:
            session.add(Credit(**json.loads(message.body)))

    inbox.drain(credit, once=True)                   # in a Celery task, a thread or a cron job

`Inbox` in `databases.sqlalchemy` and `Inbox` in `databases.django` provide the methods of `BaseInbox`.
"""

import hashlib
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from typing import Any, Final, Generic, TypeVar
from weakref import WeakKeyDictionary

from rocketmq_broker.databases import MAX_CHARACTERS, check_length
from rocketmq_broker.message import Message, MessageExt
from rocketmq_broker.world import World, current_world

logger = logging.getLogger(__name__)

S = TypeVar("S")
"""The type of a handler's first argument: a SQLAlchemy session, or the alias of a Django database."""
Handler = Callable[[S, "Sequence[InboxMessage]"], bool | None]
"""Processes messages in the database transaction that removes them. If it raises an error, nothing is stored.

It may return False if all messages were processed before and it changed nothing. This result does not prove that other messages
can be processed, so no failure counts because of it (see `BaseInbox.drain`).

After an error, the inbox calls the handler again with each message alone, so that a failing message does not delay the others.
"""
GiveUp = Callable[[S, "InboxMessage", str], None]
"""Called instead of parking a message, in the database transaction that removes the message. Gets the message and the reason."""

MAX_TRIES: Final = 16
"""The default number of failures after which a message is parked. It equals RocketMQ's default number of redeliveries."""
BATCH_SIZE: Final = 256
"""The default maximum number of messages in one database transaction."""
MAX_DELAY_S: Final = 60
"""The maximum time between two attempts of a message, in seconds. The first delay is 1 s, and each further delay is doubled."""
MAX_FAILURES_IN_VAIN: Final = 5
"""The number of failed messages after which a drain ends if no message was processed.

In that case, the cause is not a single message, and further drains of this process do nothing for a second.
"""
MAX_REASON_CHARACTERS: Final = 500
_FULL_SCAN_MS: Final = 1000
_IN_VAIN_MS: Final = 1000
_ENDED: Final = "the process ended while it processed this message"
INBOX_COLUMNS: Final = (
    "message_key",
    "topic",
    "body",
    "properties",
    "status",
    "received_at_ms",
    "attempts",
    "failed_at_ms",
    "last_error",
)
"""The columns of a message's row that `message_from` reads."""


class InboxStatus(StrEnum):
    """The status of a message in the inbox. Processed messages are removed."""

    NEW = "NEW"
    """The message has not failed."""
    FAILED = "FAILED"
    """The message failed, and is tried again after a delay."""
    PARKED = "PARKED"
    """The message failed too often. It is tried again only after `retry`."""
    DISMISSED = "DISMISSED"
    """The message was parked, and an operator has decided not to process it; see `dismiss`."""


class ProcessEnded(Exception):
    """The error that is recorded for a message if the process was killed, or reached a time limit, while processing it."""


class ParkMessage(Exception):
    """Raised by a handler to park the message at once, because another attempt cannot help. Its text is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxMessage(Message):
    """A message in the inbox."""

    key: str
    """The key of the row: the producer's message id and the broker's message id."""
    status: InboxStatus
    received_at_ms: int
    """The time at which the message was stored, in milliseconds since the epoch."""
    attempts: int
    """The number of failures that count; see `BaseInbox.drain`."""
    failed_at_ms: int | None
    """The time of the last failure, in milliseconds since the epoch."""
    last_error: str | None
    """The reason for the last failure: the error's type and the first line of its text."""

    @property
    def message_id(self) -> str:
        """Returns the producer's message id, or the key of the row if the message has none."""
        return self.transaction_id or self.key


@dataclass(frozen=True, slots=True)
class InboxState:
    """The state of an inbox: message counts by status, times of the oldest messages, and an error."""

    new: int
    failed: int
    suspected: int
    """The number of failed messages whose failures count, because other messages were processed in the meantime."""
    parked: int
    oldest_new_at_ms: int | None
    """The time at which the oldest new message was stored, in milliseconds since the epoch."""
    oldest_received_at_ms: int | None
    """The time at which the oldest waiting message was stored, in milliseconds since the epoch."""
    last_error: str | None
    """The reason why one of the failed messages failed."""

    @property
    def waiting(self) -> int:
        """Returns the number of new and failed messages."""
        return self.new + self.failed


@dataclass(slots=True)
class DrainResult:
    """The result of a drain: the numbers of messages that were processed, that failed, and that were parked or given up."""

    handled: int = 0
    failed: int = 0
    parked: int = 0


@dataclass(slots=True)
class _Attempt:
    """An attempt to process messages in one database transaction."""

    taken: Sequence[InboxMessage] = ()
    has_changed: bool = False
    error: Exception | None = None


@dataclass(slots=True)
class _Pass:
    """The state that a process keeps between drains, to count failures and to make drains cheaper. Losing it is harmless."""

    handled_at_ms: dict[str, int] = field(default_factory=dict)
    """Maps each topic to the time at which this process last processed one of its messages."""
    floor_ms: int = 0
    """The time before which all new messages were taken.

    Searches begin at this time, because PostgreSQL keeps removed rows in the index, and reading them is slow.
    """
    in_vain_until_ms: int = 0
    """The time until which drains do nothing, because several messages failed and none was processed."""
    scanned_at_ms: int = 0
    """The time of the last search that ignored `floor_ms`. A drain with such a search also tries failed messages."""


class BaseInbox(ABC, Generic[S]):
    """The common logic of an inbox, for any database library. Safe to use from several threads and processes."""

    def __init__(self, consumer: str, world: World | None = None) -> None:
        """`consumer` separates the inboxes of several consumers in one database. Use the name of the consumer group.

        By default, each call uses the world of its caller. Therefore, a module can create an inbox, and an explored test can
        run it in several worlds.

        Raises ValueError if the name is empty or longer than its column.
        """
        check_length("consumer of an inbox", consumer)
        self.consumer = consumer
        self._only_world = world
        self._passes: WeakKeyDictionary[World, _Pass] = WeakKeyDictionary()

    @property
    def _world(self) -> World:
        return self._only_world or current_world()

    @property
    def _pass(self) -> _Pass:
        """Returns the state of this process. In an explored test, each process has its own world."""
        return self._passes.setdefault(self._world, _Pass())

    def put(self, messages: Iterable[Message]) -> None:
        """Stores messages durably. Acknowledge them after this call. A message that is already waiting is not stored again.

        A redelivery that arrives after the message was processed is stored again: process it idempotently, or drain with `once`.
        """
        rows = self.rows(messages)
        if rows:
            with self._transaction() as transaction:
                self._insert(transaction, rows)

    def rows(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """Returns the rows of the messages, without duplicate keys. Sorts them by key, so that two inserts cannot deadlock."""
        now_ms = self._world.wall_ms()
        by_key = {row["message_key"]: row for row in (self._row(message, now_ms) for message in messages)}
        return [by_key[key] for key in sorted(by_key)]

    def drain(
        self,
        handle: Handler[S],
        *,
        once: bool = False,
        max_tries: int = MAX_TRIES,
        give_up: GiveUp[S] | None = None,
        batch_size: int = BATCH_SIZE,
        max_batches: int | None = None,
        one_by_one: bool = False,
    ) -> DrainResult:
        """Processes the messages that are due. Returns when none is left, or after `max_batches` database transactions.

        If a batch fails, each of its messages is tried alone. A message that fails alone is tried again after 1 s. Each
        failure that counts doubles this delay, up to 60 s. A failure counts if this process has processed another message
        of the same topic since the message's previous failure. Therefore, an outage of the database, or a rule that refuses
        all messages, counts at most once. Failed messages are tried at most once a second. The drain ends early if
        MAX_FAILURES_IN_VAIN messages fail alone and none succeeds.

        After `max_tries` counted failures, or if the handler raises ParkMessage, the message is parked. If `give_up` is
        given, it is called instead; if it raises an error, the message is parked.

        With `once`, a message whose id this consumer has processed before is removed and not processed again.

        With `one_by_one`, up to `batch_size` messages are tried alone, and a failure is recorded before each attempt. Use it
        after a process was killed during a drain: if one message is the cause, only that message fails again.

        Raises the database library's error if messages cannot be taken. No message is lost in that case.
        """
        result = DrainResult()
        if not one_by_one and 0 < self._pass.in_vain_until_ms - self._world.wall_ms() <= _IN_VAIN_MS:
            return result
        failing = _Failing(self, handle, once, max_tries, give_up, result)
        if one_by_one:
            failing.try_each(self.due(batch_size), is_recorded_before=True)
            return result
        scanned_before_ms = self._pass.scanned_at_ms
        for number in count():
            if max_batches is not None and number >= max_batches:
                break
            attempt = self._attempt(handle, once, lambda s: self._take(s, batch_size, self._floor_ms()))
            if attempt.error is not None:
                if not failing.try_each(attempt.taken):
                    return result
                continue
            result.handled += len(attempt.taken)
            if attempt.taken:
                self._pass.floor_ms = max(self._pass.floor_ms, attempt.taken[-1].received_at_ms)
            if len(attempt.taken) < batch_size:
                break
        if self._pass.scanned_at_ms != scanned_before_ms:
            failing.try_each(self._due(batch_size), is_recorded_before=True)
        return result

    def state(self) -> InboxState:
        """Returns the number of messages by status, and the times of the oldest waiting messages."""
        with self._reading() as transaction:
            return self._count(transaction)

    def parked(self, max_messages: int = 100) -> Sequence[InboxMessage]:
        """Returns the parked messages, oldest first."""
        with self._reading() as transaction:
            return self._find(transaction, InboxStatus.PARKED, max_messages)

    def retry(self, keys: Collection[str] | None = None) -> int:
        """Makes the parked messages with these keys due again, by default all parked messages. Returns their number."""
        with self._transaction() as transaction:
            return self._update(
                transaction,
                InboxStatus.PARKED,
                keys,
                {"status": InboxStatus.NEW.value, "attempts": 0, "next_try_at_ms": self._world.wall_ms()},
            )

    def dismiss(self, keys: Collection[str]) -> int:
        """Marks parked messages as dismissed. They stay in the table, but are not processed or counted. Returns their number."""
        with self._transaction() as transaction:
            return self._update(transaction, InboxStatus.PARKED, keys, {"status": InboxStatus.DISMISSED.value})

    def due(self, max_messages: int = 100) -> Sequence[InboxMessage]:
        """Returns messages that are due, oldest first, and locks nothing.

        Use it with `done` for work outside the database, such as sending the messages of an outbox: a drain would keep its
        database transaction open during the work.
        """
        with self._reading() as transaction:
            new = self._find(transaction, InboxStatus.NEW, max_messages)
            return [*new, *self._find(transaction, InboxStatus.FAILED, max_messages - len(new), self._world.wall_ms())]

    def done(self, keys: Collection[str]) -> int:
        """Removes messages that were processed. Returns their number."""
        with self._transaction() as transaction:
            return self._delete(transaction, keys)

    def is_due(self) -> bool:
        """Returns True if a drain would find messages. Locks nothing."""
        with self._reading() as transaction:
            return self._has_due(transaction, self._world.wall_ms())

    def _due(self, limit: int) -> Sequence[InboxMessage]:
        with self._reading() as transaction:
            return self._find(transaction, InboxStatus.FAILED, limit, self._world.wall_ms())

    def _attempt(self, handle: Handler[S], once: bool, take: Callable[[S], Sequence[InboxMessage]]) -> _Attempt:
        """Takes and processes messages in one database transaction. Raises the database's error if messages cannot be taken."""
        attempt = _Attempt()
        try:
            with self._transaction() as transaction:
                attempt.taken = take(transaction)
                messages = self._first_ones(transaction, attempt.taken) if once else attempt.taken
                attempt.has_changed = bool(messages) and handle(transaction, messages) is not False
        except Exception as error:
            if not attempt.taken:
                raise
            attempt.error = error
        else:
            if attempt.has_changed:
                self._pass.handled_at_ms.update(dict.fromkeys((m.topic for m in attempt.taken), self._world.wall_ms()))
        return attempt

    def _floor_ms(self) -> int:
        """Returns the time from which to search for new messages.

        Returns 0 once a second, because the clocks of processes may differ.
        """
        now_ms = self._world.wall_ms()
        if abs(now_ms - self._pass.scanned_at_ms) < _FULL_SCAN_MS:
            return self._pass.floor_ms
        self._pass.scanned_at_ms = now_ms
        self._pass.floor_ms = 0
        return 0

    def _first_ones(self, transaction: S, messages: Sequence[InboxMessage]) -> Sequence[InboxMessage]:
        by_id = {_id_to_record(message.message_id): message for message in reversed(messages)}
        new = self._record_consumed(transaction, sorted(by_id))
        return [message for message in messages if by_id[key := _id_to_record(message.message_id)] is message and key in new]

    def _fails(self, message: InboxMessage, error: Exception, max_tries: int) -> dict[str, Any]:
        """Returns the values of a message's row after a failure."""
        now_ms = self._world.wall_ms()
        others_pass = self._pass.handled_at_ms.get(message.topic, 0) > (message.failed_at_ms or now_ms)
        attempts = message.attempts + others_pass
        is_parked = attempts >= max_tries or isinstance(error, ParkMessage)
        age_s = (now_ms - message.received_at_ms) // 1000 if isinstance(error, ProcessEnded) else 0
        delay_s = min(MAX_DELAY_S, max(2 ** min(attempts, MAX_DELAY_S), age_s))
        return {
            "status": (InboxStatus.PARKED if is_parked else InboxStatus.FAILED).value,
            "attempts": attempts,
            "failed_at_ms": now_ms,
            "next_try_at_ms": now_ms + delay_s * 1000,
            "last_error": reason_of(error),
        }

    def _row(self, message: Message, now_ms: int) -> dict[str, Any]:
        return {
            "consumer": self.consumer,
            "message_key": self.key_of(message),
            "topic": message.topic,
            "body": message.body,
            "properties": json.dumps(dict(message.properties), separators=(",", ":")),
            "status": InboxStatus.NEW.value,
            "received_at_ms": now_ms,
            "next_try_at_ms": now_ms,
            "attempts": 0,
        }

    def key_of(self, message: Message) -> str:
        """Returns the key of a message's row, which consists of the message's ids.

        A producer may use a message id twice, and a broker that was set up again repeats its message ids.
        """
        ids = [message.transaction_id, message.offset_message_id if isinstance(message, MessageExt) else None]
        return _id_to_record(":".join(filter(None, ids)) or str(self._world.new_uuid()))

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[S]:
        """Returns a database transaction, which is committed at the end of the block."""

    def _reading(self) -> AbstractContextManager[S]:
        """Returns a transaction that only reads."""
        return self._transaction()

    @abstractmethod
    def _insert(self, transaction: S, rows: Sequence[Mapping[str, Any]]) -> None:
        """Inserts the rows whose key does not exist."""

    @abstractmethod
    def _take(self, transaction: S, limit: int, since_ms: int) -> Sequence[InboxMessage]:
        """Removes and returns new messages stored since `since_ms`, oldest first. Skips those that another transaction takes."""

    @abstractmethod
    def _take_one(self, transaction: S, key: str) -> Sequence[InboxMessage]:
        """Removes and returns the message with this key. Skips a message that is parked or that another transaction takes."""

    @abstractmethod
    def _find(self, transaction: S, status: InboxStatus, limit: int, due_by_ms: int | None = None) -> Sequence[InboxMessage]:
        """Returns messages with this status whose next attempt is due by `due_by_ms`, earliest first. Locks nothing."""

    @abstractmethod
    def _update(self, transaction: S, status: InboxStatus, keys: Collection[str] | None, values: Mapping[str, Any]) -> int:
        """Changes the messages with this status and these keys, by default all keys. Returns their number."""

    @abstractmethod
    def _delete(self, transaction: S, keys: Collection[str]) -> int:
        """Removes messages. Returns their number."""

    @abstractmethod
    def _has_due(self, transaction: S, now_ms: int) -> bool:
        """Returns True if there is a new message, or a failed one whose next attempt is due. Locks nothing."""

    @abstractmethod
    def _record_consumed(self, transaction: S, ids: Sequence[str]) -> Collection[str]:
        """Records the ids as processed by this consumer. Returns those that were not recorded before."""

    @abstractmethod
    def _count(self, transaction: S) -> InboxState:
        """Returns the state of this consumer's messages. Reads only the index and the rows of failed messages."""


@dataclass(frozen=True, slots=True)
class _Failing(Generic[S]):
    """Processes messages one at a time, and records the failures."""

    inbox: BaseInbox[S]
    handle: Handler[S]
    once: bool
    max_tries: int
    give_up: GiveUp[S] | None
    result: DrainResult

    def try_each(self, messages: Sequence[InboxMessage], *, is_recorded_before: bool = False) -> bool:
        """Tries the messages one by one, in random order. Returns False after MAX_FAILURES_IN_VAIN failures without a success.

        With `is_recorded_before`, records a failure of each message before the attempt, in case the message ends the process.
        """
        inbox, in_vain, has_passed = self.inbox, 0, False
        for message in inbox._world.random.sample(messages, len(messages)):
            if is_recorded_before and not self._record_before(message):
                continue
            attempt = inbox._attempt(self.handle, self.once, lambda s, key=message.key: inbox._take_one(s, key))  # type: ignore[misc]
            if attempt.error is None:
                self.result.handled += len(attempt.taken)
                has_passed = has_passed or bool(attempt.taken)
                continue
            self._record(attempt.taken[0], attempt.error)
            in_vain += 1
            if in_vain >= MAX_FAILURES_IN_VAIN and not has_passed:
                logger.warning("all of the last %d messages failed: %s", in_vain, reason_of(attempt.error))
                inbox._pass.in_vain_until_ms = inbox._world.wall_ms() + _IN_VAIN_MS
                return False
        return True

    def _record_before(self, message: InboxMessage) -> bool:
        """Records a failure before the attempt. A successful attempt removes it together with the row.

        Returns False, and parks the message, if too many processes have ended while processing it.
        """
        ended = ProcessEnded(_ENDED)
        values = self.inbox._fails(message, ended, self.max_tries + 1)
        if values["status"] == InboxStatus.PARKED.value:
            self._record(message, ended)
            return False
        values["last_error"] = message.last_error or values["last_error"]
        with self.inbox._transaction() as transaction:
            self.inbox._update(transaction, message.status, [message.key], values)
        return True

    def _record(self, message: InboxMessage, error: Exception) -> None:
        values = self.inbox._fails(message, error, self.max_tries)
        is_parked = values["status"] == InboxStatus.PARKED.value
        if is_parked and self._gave_up(message, values["last_error"]):
            self.result.parked += 1
            return
        with self.inbox._transaction() as transaction:
            self.inbox._update(transaction, message.status, [message.key], values)
        self.result.parked += is_parked
        self.result.failed += not is_parked
        if is_parked:
            logger.error("message %s of topic %s is parked: %s", message.key, message.topic, values["last_error"])

    def _gave_up(self, message: InboxMessage, reason: str) -> bool:
        """Returns True if `give_up` accepted the message, which is then removed."""
        if self.give_up is None:
            return False
        give_up = self.give_up
        attempt = self.inbox._attempt(
            lambda transaction, messages: give_up(transaction, messages[0], reason),
            False,
            lambda transaction: self.inbox._take_one(transaction, message.key),
        )
        if attempt.error is not None:
            logger.error("give_up failed for message %s: %s", message.key, reason_of(attempt.error))
        return attempt.error is None


def message_from(row: Any) -> InboxMessage:
    """Returns the message in a row. The row's attributes are its columns."""
    return InboxMessage(
        topic=row.topic,
        body=bytes(row.body),
        properties=json.loads(row.properties),
        key=row.message_key,
        status=InboxStatus(row.status),
        received_at_ms=row.received_at_ms,
        attempts=row.attempts,
        failed_at_ms=row.failed_at_ms,
        last_error=row.last_error,
    )


def state_from(by_status: Iterable[tuple[str, int, int]], failed: tuple[int, int | None, str | None]) -> InboxState:
    """Returns the state of an inbox.

    `by_status` contains each status, its number of messages, and the earliest time of a next attempt. For a new message, this is
    the time at which it was stored. `failed` describes the failed messages: the number of messages whose failures count, the
    earliest time at which one was stored, and the reason for one failure.
    """
    counts = {InboxStatus(status): (number, earliest_ms) for status, number, earliest_ms in by_status}
    new, oldest_new_ms = counts.get(InboxStatus.NEW, (0, None))
    suspected, oldest_failed_ms, reason = failed
    return InboxState(
        new=new,
        failed=counts.get(InboxStatus.FAILED, (0, None))[0],
        suspected=suspected,
        parked=counts.get(InboxStatus.PARKED, (0, None))[0],
        oldest_new_at_ms=oldest_new_ms,
        oldest_received_at_ms=min((at for at in (oldest_new_ms, oldest_failed_ms) if at is not None), default=None),
        last_error=reason,
    )


def reason_of(error: BaseException) -> str:
    """Returns an error's type and the first line of its text. The other lines of a database error may contain customer data."""
    # SQLAlchemy's errors show the statement with its parameters. An application may raise its own error from one of them.
    cause = getattr(error, "orig", None) or getattr(error.__cause__, "orig", None) or error
    lines = str(cause).splitlines()
    text = f"{type(cause).__name__}: {lines[0]}" if lines else type(cause).__name__
    return text.encode("utf-8", "replace").decode()[:MAX_REASON_CHARACTERS].replace("\0", "")


def _id_to_record(text: str) -> str:
    """Returns an id that fits into its column. A client can send any id, even one that the database does not accept."""
    if len(text) <= MAX_CHARACTERS and text.isascii() and text.isprintable():
        return text
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
