"""`barrier`, `settle`, `once` and `conclude` for Django's ORM. Needs the extra `django` and this package in INSTALLED_APPS.

    def execute_local_transaction(self, message, payment):
        with barrier(message):
            Payment.objects.create(...)
        return LocalTransactionState.COMMIT_MESSAGE

    def check_local_transaction(self, message):
        return settle(message)

Each call except `conclude` runs in its own durable database transaction. Inside another transaction Django raises RuntimeError.
Each call first closes this thread's connection if it is broken or too old, as Django does at the start of a request, because
listeners run in threads without requests. `using` is the alias of the database.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

if find_spec("django") is None:
    raise ImportError("the barrier for Django needs the package django: pip install 'rocketmq-broker[django]'")

from django.apps import apps as installed_apps
from django.db import DEFAULT_DB_ALIAS, IntegrityError, close_old_connections, transaction

from rocketmq_broker.client import LocalTransactionState
from rocketmq_broker.databases import DecidedBefore, LocalOutcome, decision_of, key_of, transaction_id_of
from rocketmq_broker.message import Message, MessageExt

_APP = "rocketmq"


@contextmanager
def barrier(message: Message, state: LocalOutcome = LocalOutcome.COMMITTED, *, using: str = DEFAULT_DB_ALIAS) -> Iterator[None]:
    """Runs a local transaction in its block. The transaction's row and the block's work are committed together at the end.

    The work is durable after the block. Raises DecidedBefore, before the block runs, if the transaction already has a row. If the
    block raises an error, nothing is written. If the database commit raises an error, the outcome is not known: answer UNKNOWN,
    so that the check-back decides. With PENDING, answer UNKNOWN and call `conclude` later.
    """
    transaction_id = transaction_id_of(message)
    with _one_commit(using):
        if not _inserted("TransactionOutcome", using, transaction_id=transaction_id, state=state.value):
            raise DecidedBefore(transaction_id)
        yield


def settle(message: Message, *, using: str = DEFAULT_DB_ALIAS) -> LocalTransactionState:
    """Returns the answer to a check-back. Writes ROLLED_BACK first if the transaction has no row.

    The change is durable on return.
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
