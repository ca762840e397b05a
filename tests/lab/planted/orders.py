"""Bugs planted in the order service."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from sqlmodel import Session, col, select

from lab.simulation.judges.violation import Promise
from order_messages.states import OrderState, TransactionKind, TransactionState
from order_service.adapters import order_store
from order_service.adapters.local_transaction import ITEMS, ORDERS, item_values, order_values
from order_service.adapters.order_store import order_of
from order_service.adapters.tables import OrderRow, TransactionRow
from order_service.domain.history import Witness
from order_service.domain.life_cycle import OrderEvent, next_state
from order_service.domain.order import Cancellation, Order
from order_service.service_layer.attempt import Attempt, Outcome, TransactionFailed
from order_service.service_layer.cancelling import Cancelled, cancellation_message
from order_service.service_layer.paying import ImpossibleNow, UnknownOrder
from rocketmq_broker.client import LocalTransactionState
from rocketmq_broker.message import Message, MessageExt
from tests.lab.planted.patches import Patches
from tests.lab.planted.planted_bug import planted_bug

_LISTENER: Final = "order_service.service_layer.transaction_listener:DatabaseTransactionListener"
_STORE: Final = "order_service.adapters.order_store:SqlOrderStore"


@planted_bug(
    needs="an order service that dies after its local commit, or another member of the group that is asked",
    breaks=Promise.ONE_OUTCOME,
    noticed_by="tests/component/order_service/test_transaction_listener.py::test_a_local_transaction_after_the_check_back_rolls_back",
    seed=2,
)
def answers_from_memory(patches: Patches) -> None:
    """A check-back is answered by what this process remembers, and by ROLLBACK for what it does not."""
    execute, look = patches.original(f"{_LISTENER}.execute_local_transaction"), patches.original(f"{_LISTENER}._answer")

    def execute_local_transaction(self: Any, message: Message, arg: object) -> LocalTransactionState:
        state: LocalTransactionState = execute(self, message, arg)
        self.__dict__.setdefault("_remembered", {})[message.transaction_id] = state
        return state

    def _answer(self: Any, message: MessageExt) -> LocalTransactionState:
        remembered: dict[str | None, LocalTransactionState] = self.__dict__.setdefault("_remembered", {})
        state = remembered.get(message.transaction_id, LocalTransactionState.ROLLBACK_MESSAGE)
        if state is LocalTransactionState.UNKNOWN:
            state = look(self, message)
        return state

    patches.replace(f"{_LISTENER}.execute_local_transaction", execute_local_transaction)
    patches.replace(f"{_LISTENER}._answer", _answer)


@planted_bug(
    needs="a local transaction that is slower than the first check-back: a database that hangs, a process that stands still",
    breaks=Promise.ONE_OUTCOME,
    noticed_by="tests/component/order_service/test_http.py::test_a_transaction_that_check_back_rolled_back_first_is_503",
    seed=605,
)
def rollback_without_marker(patches: Patches) -> None:
    """A check-back that finds no row answers ROLLBACK without writing the marker that keeps the local transaction out."""
    settle_durably = patches.original(f"{_STORE}.settle")

    def settle(
        self: Any,
        transaction_id: str,
        order_id: str | None = None,
        kind: TransactionKind = TransactionKind.ORDER,
        witness: Witness | None = None,
    ) -> TransactionState:
        with self._sessions.reading() as session:
            query = select(TransactionRow).where(col(TransactionRow.transaction_id) == transaction_id)
            if session.exec(query).first() is None:
                self.history.require_no_doubt(session, witness)
                return TransactionState.ROLLED_BACK
        state: TransactionState = settle_durably(self, transaction_id, order_id, kind, witness)
        return state

    patches.replace(f"{_STORE}.settle", settle)


@planted_bug(
    needs="an order service that dies between them, or a check-back there",
    breaks=Promise.ORDER_HAS_CREDIT,
    noticed_by="tests/component/order_service/test_order_store.py::test_a_late_local_transaction_cannot_slip_in_behind_a_check_back",
    seed=176,
)
def order_and_row_apart(patches: Patches) -> None:
    """The order and its transaction's row are written by two local commits, one after the other."""

    def store_order(self: Any, order: Order, transaction_id: str) -> None:
        state = TransactionState.COMMITTED if order.state.is_published else TransactionState.PENDING
        with order_store._unless_key_taken(), self._sessions.writing() as session:
            session.connection().execute(ORDERS.insert(), order_values(order))
            session.connection().execute(ITEMS.insert(), item_values(order))
        with self._sessions.writing() as session:
            order_store._insert_transaction(session.connection(), self._transaction(transaction_id, state, order.order_id))
        self.history.note_local_commit(transaction_id)

    patches.replace(f"{_STORE}.store_order", store_order)


@planted_bug(
    needs="a customer who repeats a request while the first one still runs",
    breaks=Promise.ANSWERS_FIT,
    noticed_by="tests/component/order_service/test_http.py::test_a_key_taken_while_the_half_message_was_under_way_answers_with_the_order_there_is",
    seed=5,
)
def key_not_unique(patches: Patches) -> None:
    """An idempotency key is looked for before the order, and no unique index guards it.

    Omits the idempotency key of a new order if another order has the same key, as if the database had no unique index.
    """
    store: Callable[..., None] = patches.original(f"{_STORE}.store_order")

    def store_order(self: Any, order: Order, transaction_id: str) -> None:
        key = order.idempotency_key
        if key is not None and self.find_order_by_key(order.customer, key) is not None:
            order = replace(order, idempotency_key=None)
        store(self, order, transaction_id)

    patches.replace(f"{_STORE}.store_order", store_order)


@planted_bug(
    needs="a broker that is away when a customer cancels, or an order service that dies",
    breaks=Promise.ORDER_HAS_CREDIT,
    noticed_by="tests/component/order_service/test_cancelling_and_paying.py::test_a_cancellation_whose_local_commit_is_unknown_is_202_and_check_back_decides",
    seed=11,
)
def cancelled_before_told(patches: Patches) -> None:
    """An order becomes CANCELLED in the database before the broker has stored the message about it."""

    def cancel(self: Any, order_id: str, reason: str) -> Cancelled:
        order: Order | None = self.store.change_unpaid(order_id, OrderEvent.CANCEL, self.now_ms(), reason)
        if order is None:
            raise UnknownOrder("no order has this id")
        if order.state is OrderState.CANCELLED:
            return Cancelled(order)
        if next_state(order.state, OrderEvent.CANCEL) is None:
            raise ImpossibleNow(f"the order is {order.state} and can no longer be cancelled")
        with self.store._sessions.writing() as session:
            row = order_store._locked(session, order_id)
            if row is not None:
                order_store._change(session, row, OrderEvent.CANCEL, self.now_ms(), reason)
        cancellation = Cancellation(order=order, reason=reason, cancelled_at_ms=self.now_ms())
        outcome: Outcome = self.sender.send_in_transaction(cancellation_message(cancellation), Attempt(cancellation))
        if outcome.problem is not None and outcome is not Outcome.NOT_CANCELLABLE:
            raise TransactionFailed(outcome)
        return Cancelled(self.store.find_order(order_id) or order, is_known=outcome.state is not TransactionState.UNKNOWN)

    def store_cancellation(self: Any, cancellation: Cancellation, transaction_id: str) -> None:
        kind = TransactionKind.CANCELLATION
        values = self._transaction(transaction_id, TransactionState.COMMITTED, cancellation.order_id, kind)
        with self._sessions.writing() as session:
            order_store._insert_transaction(session.connection(), values)
        self.history.note_local_commit(transaction_id)

    patches.replace("order_service.service_layer.cancelling:OrderCancelling.cancel", cancel)
    patches.replace(f"{_STORE}.store_cancellation", store_cancellation)


@planted_bug(
    needs="a customer who pays after the deadline",
    breaks=Promise.ONE_OUTCOME,
    noticed_by="tests/component/order_service/test_cancelling_and_paying.py::test_check_back_rolls_an_order_back_that_is_not_paid_in_time",
    seed=2,
)
def expiry_not_written(patches: Patches) -> None:
    """A check-back after the deadline answers ROLLBACK without marking the order EXPIRED, and a later payment is taken."""

    def expire_if_overdue(self: Any, transaction_id: str, now_ms: int, witness: Witness | None = None) -> TransactionState:
        with self._sessions.reading() as session:
            self.history.require_no_doubt(session, witness)
            transaction = session.exec(select(TransactionRow).where(col(TransactionRow.transaction_id) == transaction_id)).one()
            row = session.exec(select(OrderRow).where(col(OrderRow.order_id) == (transaction.order_id or ""))).first()
            is_own = row is not None and self.history.was_asked_before(transaction_id, witness)
            is_overdue = row is not None and order_of(row).is_overdue(now_ms)
            return TransactionState.ROLLED_BACK if is_own and is_overdue else TransactionState(transaction.state)

    def _expire_if_overdue(session: Session, row: OrderRow, now_ms: int) -> bool:
        return False

    patches.replace(f"{_STORE}.expire_if_overdue", expire_if_overdue)
    patches.replace("order_service.adapters.order_store:_expire_if_overdue", _expire_if_overdue)


@planted_bug(
    needs="an order service that answers from an old copy of its database",
    breaks=Promise.ONE_OUTCOME,
    noticed_by="tests/component/order_service/test_http.py::test_a_service_on_an_old_copy_of_its_database_takes_no_order_until_a_person_decides",
    seed=27,
)
def witness_not_checked(patches: Patches) -> None:
    """A database that lacks the witness of a half message answers its check-back all the same."""

    def require_no_doubt(self: Any, session: Session, witness: Witness | None) -> None:
        pass

    patches.replace("order_service.adapters.order_history:OrderHistory.require_no_doubt", require_no_doubt)


@planted_bug(
    needs="a database that stores a commit and loses its answer",
    breaks=Promise.ONE_OUTCOME,
    noticed_by="tests/component/order_service/test_cancelling_and_paying.py::test_a_cancellation_whose_local_commit_is_unknown_is_202_and_check_back_decides",
    seed=353,
)
def lost_answer_rolls_back(patches: Patches) -> None:
    """A local commit whose answer is lost counts as failed, and the broker gets ROLLBACK."""
    target = "order_service.service_layer.transaction_listener:_outcome_of"
    outcome_of = patches.original(target)

    def _outcome_of(store: Callable[[], None], transaction_id: str) -> Outcome:
        outcome: Outcome = outcome_of(store, transaction_id)
        return Outcome.UNAVAILABLE if outcome is Outcome.UNKNOWN else outcome

    patches.replace(target, _outcome_of)
