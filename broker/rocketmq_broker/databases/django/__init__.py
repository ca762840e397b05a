"""`barrier`, `settle`, `once`, `conclude` and `Inbox` for Django's ORM.

Needs the extra `django` and this package in INSTALLED_APPS.

    def execute_local_transaction(self, message, payment):
        with barrier(message):
            Payment.objects.create(...)
        return LocalTransactionState.COMMIT_MESSAGE

    def check_local_transaction(self, message):
        return settle(message)

Each call except `conclude` and `put_in` runs in its own durable database transaction. Inside another transaction Django raises
RuntimeError.
Each call first closes this thread's connection if it is broken or too old, as Django does at the start of a request, because
listeners run in threads without requests. `using` is the alias of the database.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

if find_spec("django") is None:
    raise ImportError("the barrier for Django needs the package django: pip install 'rocketmq-broker[django]'")

from django.apps import apps as installed_apps
from django.db import DEFAULT_DB_ALIAS, IntegrityError, close_old_connections, connections, transaction
from django.db.models import Count, Min, Q

from rocketmq_broker.client import LocalTransactionState
from rocketmq_broker.databases import DecidedBefore, LocalOutcome, decision_of, key_of, transaction_id_of
from rocketmq_broker.databases.inbox import BaseInbox, InboxMessage, InboxState, InboxStatus, message_from, state_from
from rocketmq_broker.message import Message, MessageExt
from rocketmq_broker.world import World

_APP = "rocketmq"


@contextmanager
def barrier(message: Message, state: LocalOutcome = LocalOutcome.COMMITTED, *, using: str = DEFAULT_DB_ALIAS) -> Iterator[None]:
    """Runs the `with` block as a local transaction.

    The transaction's row and the block's work are committed together. The work is durable after the block. Raises
    DecidedBefore, before the block runs, if the transaction already has a row. If the block raises an error, nothing is
    written. If the database commit raises an error, the outcome is not known: return UNKNOWN from the listener, so that
    the check-back decides. With PENDING, return UNKNOWN and call `conclude` later.
    """
    transaction_id = transaction_id_of(message)
    with _one_commit(using):
        if not _inserted("TransactionOutcome", using, transaction_id=transaction_id, state=state.value):
            raise DecidedBefore(transaction_id)
        yield


def settle(message: Message, *, using: str = DEFAULT_DB_ALIAS) -> LocalTransactionState:
    """Returns the transaction state with which to respond to a check-back.

    Writes ROLLED_BACK first if the transaction has no row. The change is durable on return.
    """
    transaction_id = transaction_id_of(message)
    with _one_commit(using):
        _inserted("TransactionOutcome", using, transaction_id=transaction_id, state=LocalOutcome.ROLLED_BACK.value)
        state = _rows("TransactionOutcome", using).values_list("state", flat=True).get(transaction_id=transaction_id)
    return decision_of(state)


@contextmanager
def once(message: MessageExt | str, consumer: str, key: str | None = None, *, using: str = DEFAULT_DB_ALIAS) -> Iterator[bool]:
    """Yields True if `consumer` has not consumed this message before.

    The block's work and the record of the consumption are committed together.

    The work is durable after the block. If the block raises an error, the message may be consumed again. If another thread is
    consuming the same message, the call waits for it. `consumer` identifies the work, for example by the consumer group: each
    consumer consumes a message once. `key` is a business key such as an order id; the default is the message's unique id.
    `message` may also be the key itself, for example in a Celery task.
    """
    message_key = key_of(message, consumer, key)
    with _one_commit(using):
        yield _inserted("ConsumedMessage", using, consumer=consumer, message_key=message_key)


def conclude(transaction_id: str, state: LocalOutcome, *, using: str = DEFAULT_DB_ALIAS) -> bool:
    """Decides a PENDING transaction within the caller's `transaction.atomic` block.

    The decision is durable when the caller commits.

    Returns False and writes nothing if the transaction is not PENDING.
    """
    pending = _rows("TransactionOutcome", using).filter(transaction_id=transaction_id, state=LocalOutcome.PENDING.value)
    return bool(pending.update(state=state.value) == 1)


class Inbox(BaseInbox[str]):
    """Messages that wait in the table `rocketmq_inbox` until a worker processes them; see `databases.inbox`.

        inbox = Inbox("credits")

    `put` stores messages; `put_in` stores them in the caller's `transaction.atomic` block, as an outbox does. `drain` calls a
    handler with `using` and the messages that are due. `state`, `parked` and `retry` are for operators. Workers on PostgreSQL
    take different messages at the same time; on SQLite they take turns.
    """

    def __init__(self, consumer: str, *, using: str = DEFAULT_DB_ALIAS, world: World | None = None) -> None:
        """Raises ValueError if the consumer name is empty or longer than its column."""
        super().__init__(consumer, world)
        self._using = using

    def put_in(self, messages: Iterable[Message]) -> None:
        """Stores messages in the caller's `transaction.atomic` block. They are durable and can be processed after the commit."""
        self._insert(self._using, self.rows(messages))

    @contextmanager
    def _transaction(self) -> Iterator[str]:
        with _one_commit(self._using):
            yield self._using

    def _insert(self, transaction: str, rows: Sequence[Mapping[str, Any]]) -> None:
        model = installed_apps.get_model(_APP, "WaitingMessage")
        _rows("WaitingMessage", transaction).bulk_create([model(**row) for row in rows], ignore_conflicts=True)

    def _mine(self, **which: object) -> Any:
        return _rows("WaitingMessage", self._using).filter(consumer=self.consumer, **which).order_by("next_try_at_ms")

    def _take(self, transaction: str, limit: int, since_ms: int) -> Sequence[InboxMessage]:
        return self._remove(limit, status=InboxStatus.NEW.value, next_try_at_ms__gte=since_ms)

    def _take_one(self, transaction: str, key: str) -> Sequence[InboxMessage]:
        return self._remove(1, status__in=[InboxStatus.NEW.value, InboxStatus.FAILED.value], message_key=key)

    def _remove(self, limit: int, **which: object) -> Sequence[InboxMessage]:
        features = connections[self._using].features
        if features.has_select_for_update:
            found = self._mine(**which).select_for_update(skip_locked=features.has_select_for_update_skip_locked)
        else:
            self._mine(message_key="").update(attempts=0)  # SQLite locks the database with the first write
            found = self._mine(**which)
        rows = list(found[:limit])
        self._mine(pk__in=[row.pk for row in rows]).delete()
        return sorted(map(message_from, rows), key=lambda message: message.received_at_ms)

    def _find(self, transaction: str, status: InboxStatus, limit: int, due_by_ms: int | None = None) -> Sequence[InboxMessage]:
        found = self._mine(status=status.value)
        if due_by_ms is not None:
            found = found.filter(next_try_at_ms__lte=due_by_ms)
        return list(map(message_from, found[:limit]))

    def _update(self, transaction: str, status: InboxStatus, keys: Collection[str] | None, values: Mapping[str, Any]) -> int:
        changed = self._mine(status=status.value)
        if keys is not None:
            changed = changed.filter(message_key__in=keys)
        return int(changed.update(**values))

    def _delete(self, transaction: str, keys: Collection[str]) -> int:
        return int(self._mine(message_key__in=keys).delete()[0])

    def _has_due(self, transaction: str, now_ms: int) -> bool:
        is_due = self._mine(status=InboxStatus.FAILED.value, next_try_at_ms__lte=now_ms)
        return bool(self._mine(status=InboxStatus.NEW.value).exists() or is_due.exists())

    def _record_consumed(self, transaction: str, ids: Sequence[str]) -> Collection[str]:
        return {one for one in ids if _inserted("ConsumedMessage", transaction, consumer=self.consumer, message_key=one)}

    def _count(self, transaction: str) -> InboxState:
        by_status = self._mine().order_by().values_list("status").annotate(Count("pk"), Min("next_try_at_ms"))
        suspected = Count("pk", filter=Q(attempts__gt=0))
        failed = self._mine(status=InboxStatus.FAILED.value).order_by()
        of_failed = failed.aggregate(number=suspected, at=Min("received_at_ms"), why=Min("last_error"))
        return state_from(by_status, (of_failed["number"], of_failed["at"], of_failed["why"]))


@contextmanager
def _one_commit(using: str) -> Iterator[None]:
    close_old_connections()
    with transaction.atomic(using=using, durable=True):
        yield


def _inserted(model: str, using: str, **values: str) -> bool:
    """Inserts a row unless its key exists. Returns whether it was inserted. Other violations raise the database's error."""
    rows = _rows(model, using)
    try:
        with transaction.atomic(using=using):
            rows.create(**values)
    except IntegrityError:
        key = {name: value for name, value in values.items() if name != "state"}
        if not rows.filter(**key).exists():
            raise
        return False
    return True


def _rows(model: str, using: str) -> Any:
    """Returns the model's rows. Looks up the model at each call, because Django loads models after importing this module."""
    return installed_apps.get_model(_APP, model)._default_manager.using(using)
