"""The order service's TransactionListener: the local transaction, and the answer to the broker's check-back."""

import logging

from broker.client import LocalTransactionState
from broker.message import Message, MessageExt
from order_service.domain.order import Order, reason_to_refuse
from order_service.domain.transaction import TransactionState
from order_service.service_layer.attempt import Attempt, Outcome
from order_service.service_layer.failpoints import Failpoints
from order_service.service_layer.order_store import IdempotencyKeyTaken, OrderStore, TransactionDecided
from service_runtime.database_errors import DatabaseFailure, DatabaseUnavailable, OutcomeUnknown

logger = logging.getLogger(__name__)

# What the order database has done decides what the broker is told.
_DECISION_OF = {
    Outcome.STORED: LocalTransactionState.COMMIT_MESSAGE,
    Outcome.REFUSED: LocalTransactionState.ROLLBACK_MESSAGE,
    Outcome.KEY_TAKEN: LocalTransactionState.ROLLBACK_MESSAGE,
    Outcome.DECIDED_BEFORE: LocalTransactionState.ROLLBACK_MESSAGE,
    Outcome.UNAVAILABLE: LocalTransactionState.ROLLBACK_MESSAGE,
    Outcome.UNKNOWN: LocalTransactionState.UNKNOWN,
}


class OrderTransactionListener:
    """Decides transactions by the order database, which all instances of the order service share.

    So any of them can answer a check-back, also for a half message that another one sent.
    """

    def __init__(self, store: OrderStore, *, order_limit_cents: int, failpoints: Failpoints) -> None:
        """`order_limit_cents` is the total above which an order is rolled back."""
        self._store = store
        self._order_limit_cents = order_limit_cents
        self._failpoints = failpoints

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        """Runs once the half message is stored (RocketMQ's executeLocalTransaction); `arg` is the `Attempt`."""
        if not isinstance(arg, Attempt) or message.transaction_id is None:
            raise TypeError("the local transaction of an order needs its attempt and a transaction id")
        arg.begin(message.transaction_id)
        outcome, reason = self._run(arg.order, message.transaction_id)
        arg.conclude(outcome, reason)
        if outcome is Outcome.STORED:
            self._failpoints.after_local_commit()
        return _DECISION_OF[outcome]

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Answers COMMIT or ROLLBACK by the transaction's row (RocketMQ's checkLocalTransaction), and makes the answer final.

        The answer is UNKNOWN while the database does not answer: the broker will ask again.
        """
        transaction_id = message.transaction_id
        if transaction_id is None:
            logger.error("check-back for a message without a transaction id: %s", message.message_id)
            return LocalTransactionState.UNKNOWN
        try:
            state = self._store.settle(transaction_id, next(iter(message.keys), None))
        except DatabaseFailure as error:
            logger.warning("check-back of transaction %s has to wait: %s", transaction_id, error)
            return LocalTransactionState.UNKNOWN
        logger.info("check-back of transaction %s: %s", transaction_id, state.value)
        return (
            LocalTransactionState.COMMIT_MESSAGE
            if state is TransactionState.COMMITTED
            else LocalTransactionState.ROLLBACK_MESSAGE
        )

    def _run(self, order: Order, transaction_id: str) -> tuple[Outcome, str]:
        """The outcome, and why a rule refused the order if one did."""
        if refusal := reason_to_refuse(order, self._order_limit_cents):
            self._mark_rolled_back(transaction_id)
            return Outcome.REFUSED, refusal
        return self._store_order(order, transaction_id), ""

    def _store_order(self, order: Order, transaction_id: str) -> Outcome:
        try:
            self._store.store_order(order, transaction_id)
        except TransactionDecided:
            logger.warning("transaction %s is rolled back: check-back came before its local transaction", transaction_id)
            return Outcome.DECIDED_BEFORE
        except IdempotencyKeyTaken:
            return Outcome.KEY_TAKEN
        except DatabaseUnavailable as error:
            logger.error("transaction %s is rolled back, the database did not take it: %s", transaction_id, error)
            return Outcome.UNAVAILABLE
        except OutcomeUnknown as error:
            logger.error("the local commit of transaction %s failed, check-back will decide: %s", transaction_id, error)
            return Outcome.UNKNOWN
        return Outcome.STORED

    def _mark_rolled_back(self, transaction_id: str) -> None:
        """Writes the marker ROLLED_BACK, so that callers can ask for the state. Without it check-back would write it."""
        try:
            self._store.settle(transaction_id)
        except DatabaseFailure as error:
            logger.warning("transaction %s is rolled back, but its marker could not be written: %s", transaction_id, error)
