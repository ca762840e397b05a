"""The TransactionListeners of the order service, which run local transactions and answer check-backs.

Local transactions run in the order database between the half message and COMMIT or ROLLBACK.

One producer sends two kinds of transactional messages, orders and cancellations. Each kind has its own topic and listener.
"""

import logging
from collections.abc import Callable, Mapping

from order_messages import order_cancelled, order_created
from order_messages.states import TransactionKind, TransactionState
from order_service.domain.history import PROPERTY, Witness
from order_service.domain.order import Cancellation, reason_to_refuse
from order_service.service_layer.attempt import DECISION_OF, Attempt, Outcome, TransactionFailed, Wanted
from order_service.service_layer.order_store import HistoryDoubted, OrderStore
from rocketmq_broker.client import LocalTransactionState, TransactionListener
from rocketmq_broker.message import Message, MessageExt
from service_runtime.database.database_errors import DatabaseFailure, DatabaseUnavailable, OutcomeUnknown
from service_runtime.observing.context import logging_about_message, span_about

logger = logging.getLogger(__name__)


class DatabaseTransactionListener:
    """Decides the transactions of one kind from their rows in the order database.

    All instances of the order service share that database, so each instance can answer check-backs for half messages of any other
    instance.
    """

    def __init__(self, kind: TransactionKind, store: OrderStore, *, order_limit_cents: int, now_ms: Callable[[], int]) -> None:
        """Creates the listener. Orders with a total above `order_limit_cents` are rolled back."""
        self._kind = kind
        self._store = store
        self._order_limit_cents = order_limit_cents
        self._now_ms = now_ms

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        """Runs the local transaction after the half message is stored (executeLocalTransaction). `arg` is the `Attempt`."""
        if not isinstance(arg, Attempt) or message.transaction_id is None:
            raise TypeError(f"needs an Attempt and a transaction id, not {type(arg).__name__} and {message.transaction_id!r}")
        arg.begin(message.transaction_id)
        with logging_about_message(message), span_about([message], "execute_local_transaction"):
            outcome, reason = self._run(arg.wanted, message.transaction_id)
        arg.conclude(outcome, reason)
        return outcome.decision

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Returns the decision for a check-back from the transaction's row. COMMIT and ROLLBACK are final.

        Returns UNKNOWN, so that the broker checks again, while one of these conditions holds: the order awaits its payment
        within the deadline, the database is unavailable, or the database lacks the half message's witness and may therefore
        be an old copy. Implements RocketMQ's checkLocalTransaction.
        """
        with logging_about_message(message), span_about([message], "check_local_transaction"):
            return self._answer(message)

    def _run(self, wanted: Wanted, transaction_id: str) -> tuple[Outcome, str]:
        """Stores the order or the cancellation. Returns the outcome, and the reason if a rule refused the order."""
        if isinstance(wanted, Cancellation):
            return _outcome_of(lambda: self._store.store_cancellation(wanted, transaction_id), transaction_id), ""
        if refusal := reason_to_refuse(wanted, self._order_limit_cents):
            self._mark_rolled_back(transaction_id)
            return Outcome.REFUSED, refusal
        outcome = _outcome_of(lambda: self._store.store_order(wanted, transaction_id), transaction_id)
        if outcome is Outcome.STORED and wanted.is_paid_later:
            outcome = Outcome.AWAITING_PAYMENT
        return outcome, ""

    def _mark_rolled_back(self, transaction_id: str) -> None:
        """Writes the ROLLED_BACK row now, so that callers can read the state. Otherwise a check-back would write it."""
        try:
            self._store.settle(transaction_id)
        except DatabaseFailure as error:
            logger.warning("transaction %s is rolled back, but its row could not be written: %s", transaction_id, error)

    def _answer(self, message: MessageExt) -> LocalTransactionState:
        transaction_id = message.transaction_id
        if transaction_id is None:
            logger.error("check-back of message %s is answered UNKNOWN: the message has no transaction id", message.message_id)
            return LocalTransactionState.UNKNOWN
        history = message.properties.get(PROPERTY)
        witness = None if history is None else Witness.read(history)
        try:
            state = self._store.settle(transaction_id, next(iter(message.keys), None), self._kind, witness)
            if state is TransactionState.PENDING:
                state = self._store.expire_if_overdue(transaction_id, self._now_ms(), witness)
        except HistoryDoubted as error:
            logger.error(
                "check-back of transaction %s is answered UNKNOWN: the order database may be an old copy: %s",
                transaction_id,
                error,
            )
            return LocalTransactionState.UNKNOWN
        except DatabaseFailure as error:
            logger.warning("check-back of transaction %s is answered UNKNOWN: %s", transaction_id, error)
            return LocalTransactionState.UNKNOWN
        logger.info("check-back of transaction %s: %s", transaction_id, state.value)
        return DECISION_OF[state]


def transaction_listeners(
    store: OrderStore, *, order_limit_cents: int, now_ms: Callable[[], int]
) -> Mapping[str, TransactionListener]:
    """Returns the listener of each topic to which the order service sends in transactions."""
    kinds = {order_created.TOPIC: TransactionKind.ORDER, order_cancelled.TOPIC: TransactionKind.CANCELLATION}
    return {
        topic: DatabaseTransactionListener(kind, store, order_limit_cents=order_limit_cents, now_ms=now_ms)
        for topic, kind in kinds.items()
    }


def _outcome_of(store: Callable[[], None], transaction_id: str) -> Outcome:
    try:
        store()
    except TransactionFailed as failed:
        if failed.outcome is Outcome.DECIDED_BEFORE:
            logger.warning("transaction %s is rolled back: a check-back arrived before its local transaction", transaction_id)
        return failed.outcome
    except DatabaseUnavailable as error:
        logger.error("transaction %s is rolled back: it could not be stored: %s", transaction_id, error)
        return Outcome.UNAVAILABLE
    except OutcomeUnknown as error:
        logger.error("the local commit of transaction %s failed; a check-back will decide: %s", transaction_id, error)
        return Outcome.UNKNOWN
    return Outcome.STORED
