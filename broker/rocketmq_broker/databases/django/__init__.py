"""Barrier, settle and once for Django's ORM. Needs the extra `django`, and this package's name in INSTALLED_APPS.

    def execute_local_transaction(self, message, payment):
        with barrier(message):
            Payment.objects.create(...)
        return LocalTransactionState.COMMIT_MESSAGE

    def check_local_transaction(self, message):
        return settle(message)

Each call is a database transaction of its own, durable where it ends: inside another one Django raises RuntimeError. Each first
closes this thread's connection if it is broken or too old, as Django does at the begin of a request: listeners run in threads
without requests. `using` names the database.
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
    """Runs a local transaction in its block: the transaction's row and the block's work get one database commit, the last step.

    Durable after the block. Raises DecidedBefore, before the block runs, if the transaction has a row. If the block raises,
    nothing is written. If the database commit raises, nobody knows: answer UNKNOWN, and the check-back decides.
    With PENDING, `conclude` decides later, and the listener answers UNKNOWN.
    """
    transaction_id = transaction_id_of(message)
    with _one_commit(using):
        if not _inserted("TransactionOutcome", using, transaction_id=transaction_id, state=state.value):
            raise DecidedBefore(transaction_id)
        yield


def settle(message: Message, *, using: str = DEFAULT_DB_ALIAS) -> LocalTransactionState:
    """Returns the answer to a check-back. Writes ROLLED_BACK first if the transaction has no row; durable on return."""
    transaction_id = transaction_id_of(message)
    with _one_commit(using):
        _inserted("TransactionOutcome", using, transaction_id=transaction_id, state=LocalOutcome.ROLLED_BACK.value)
        state = _rows("TransactionOutcome", using).values_list("state", flat=True).get(transaction_id=transaction_id)
    return decision_of(state)


@contextmanager
def once(message: MessageExt | str, consumer: str, key: str | None = None, *, using: str = DEFAULT_DB_ALIAS) -> Iterator[bool]:
    """Yields whether `consumer` has not consumed this message before; the block's work and this fact get one database commit.

    Durable after the block. `consumer` names what is done, such as the consumer group: two of them in one database each consume
    a message once. `key` is an id of the business, such as an order's; the default is the message's id from its producer. In
    place of the message its key will do, as a Celery task has it. One that another thread consumes at this moment waits for it.
    If the block raises, the message may be consumed again.
    """
    message_key = key_of(message, consumer, key)
    with _one_commit(using):
        yield _inserted("ConsumedMessage", using, consumer=consumer, message_key=message_key)


def conclude(transaction_id: str, state: LocalOutcome, *, using: str = DEFAULT_DB_ALIAS) -> bool:
    """Decides a PENDING transaction, in the caller's `transaction.atomic`: nothing is durable before its commit.

    Returns False, and writes nothing, if the transaction is not PENDING.
    """
    pending = _rows("TransactionOutcome", using).filter(transaction_id=transaction_id, state=LocalOutcome.PENDING.value)
    return bool(pending.update(state=state.value) == 1)


@contextmanager
def _one_commit(using: str) -> Iterator[None]:
    close_old_connections()
    with transaction.atomic(using=using, durable=True):
        yield


def _inserted(model: str, using: str, **values: str) -> bool:
    """Inserts a row unless its key is there. Returns whether it did; another violation raises the database's error."""
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
    """Returns the model's rows. Models are there once Django is set up, which is after this module is imported."""
    return installed_apps.get_model(_APP, model)._default_manager.using(using)
