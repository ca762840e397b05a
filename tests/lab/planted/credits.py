"""Bugs planted in the credit service, and in the inbox and the outbox that its messages pass through."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from sqlalchemy import exists, select
from sqlmodel import Session

from credit_service.adapters import ledger
from credit_service.adapters.tables import BalanceRow
from credit_service.domain.credit import Credit, CreditOutcome
from lab.simulation.judges.violation import Promise
from order_messages.states import EntryKind
from rocketmq_broker.databases.inbox import InboxMessage, InboxStatus, _Attempt
from rocketmq_broker.databases.sqlalchemy import INBOX
from rocketmq_broker.message import Message, MessageExt
from service_runtime.inbox.outbox import NotSent
from tests.lab.planted.patches import Patches
from tests.lab.planted.planted_bug import planted_bug

_LEDGER: Final = "credit_service.adapters.ledger:Ledger"
_CREDITING: Final = "credit_service.service_layer.crediting:Crediting"
_INBOX: Final = "rocketmq_broker.databases.inbox:BaseInbox"
_FAILING: Final = "rocketmq_broker.databases.inbox:_Failing"
_TABLE: Final = "rocketmq_broker.databases.sqlalchemy:Inbox"


@planted_bug(
    needs="a message that is delivered twice",
    breaks=Promise.BALANCE_IS_SUM,
    noticed_by="tests/component/credit_service/test_ledger.py::test_a_redelivery_changes_nothing",
    seed=8,
)
def duplicates_added(patches: Patches) -> None:
    """The balance grows by all entries of a batch, also by those that the ledger had already."""

    def write(self: Any, session: Session, credits: Sequence[Credit]) -> list[CreditOutcome]:
        by_key = ledger._first_of_each_key(credits)
        inserted = self._insert_missing(session, by_key)
        self._add_to_balances(session, by_key.values())
        return ledger._outcomes(credits, by_key, inserted, ledger._stored_credits(session, by_key.keys() - inserted))

    patches.replace(f"{_LEDGER}.write", write)


@planted_bug(
    needs="a cancellation that overtakes its order",
    breaks=Promise.STORED_IS_PROCESSED,
    noticed_by="tests/component/credit_service/test_ledger.py::test_a_reversal_that_comes_before_its_credit_ends_at_the_same_balance",
    seed=40,
)
def credit_after_reversal_skipped(patches: Patches) -> None:
    """The credit of an order whose reversal came first is left out, and the reversal stays."""

    def write(self: Any, session: Session, credits: Sequence[Credit]) -> list[CreditOutcome]:
        by_key = ledger._first_of_each_key(credits)
        reversals = {(order_id, EntryKind.REVERSAL) for order_id, kind in by_key if kind is EntryKind.CREDIT}
        cancelled = {order_id for order_id, _ in ledger._stored_credits(session, reversals)}
        skipped = {key: each for key, each in by_key.items() if key[1] is EntryKind.CREDIT and key[0] in cancelled}
        wanted = {key: each for key, each in by_key.items() if key not in skipped}
        inserted = self._insert_missing(session, wanted)
        self._add_to_balances(session, [wanted[key] for key in inserted])
        stored = ledger._stored_credits(session, wanted.keys() - inserted)
        return ledger._outcomes(credits, by_key, inserted, {**stored, **skipped})

    patches.replace(f"{_LEDGER}.write", write)


@planted_bug(
    needs="two processes that credit one customer",
    breaks=Promise.BALANCE_IS_SUM,
    noticed_by="tests/component/credit_service/test_crediting.py::test_workers_and_a_service_at_the_same_time_credit_each_order_once",
    seed=5,
)
def balance_remembered(patches: Patches) -> None:
    """A process of the worker remembers the balances that it wrote, and adds to those."""

    def _add_to_balances(self: Any, session: Session, credits: Iterable[Credit]) -> None:
        remembered: dict[str, int] = vars(self).setdefault("_remembered", {})
        for each in credits:
            if each.customer not in remembered:
                row = session.get(BalanceRow, each.customer)
                remembered[each.customer] = 0 if row is None else row.points
            remembered[each.customer] += each.points
            insert = self._sessions.insert(BalanceRow).values(customer=each.customer, points=remembered[each.customer])
            points = {"points": remembered[each.customer]}
            session.connection().execute(insert.on_conflict_do_update(index_elements=["customer"], set_=points))

    patches.replace(f"{_LEDGER}._add_to_balances", _add_to_balances)


@planted_bug(
    needs="a database that does not answer while messages arrive",
    breaks=Promise.OFFSET_BEHIND_WORK,
    noticed_by="tests/unit/service_runtime/test_inbox_listener.py::test_a_database_that_is_away_costs_time_and_no_redelivery",
    seed=2,
)
def acknowledged_unstored(patches: Patches) -> None:
    """Messages are acknowledged although the database did not store them in the inbox."""
    target = "service_runtime.inbox.inbox_listener:InboxListener._is_stored"
    is_stored = patches.original(target)

    def _is_stored(self: Any, messages: Sequence[MessageExt]) -> bool:
        is_stored(self, messages)
        return True

    patches.replace(target, _is_stored)


@planted_bug(
    needs="no fault: the messages are in neither table between the two commits",
    breaks=Promise.STORED_IS_PROCESSED,
    noticed_by="tests/component/databases/test_inbox.py::test_work_that_is_interrupted_leaves_all_messages",
    seed=1,
)
def deleted_before_work(patches: Patches) -> None:
    """Messages leave the inbox in a database transaction of their own, before their entries are written."""

    def _attempt(self: Any, handle: Any, once: bool, take: Callable[[Any], Sequence[InboxMessage]]) -> _Attempt:
        attempt = _Attempt()
        with self._transaction() as transaction:
            attempt.taken = take(transaction)
        try:
            if attempt.taken:
                with self._transaction() as transaction:
                    handle(transaction, attempt.taken)
        except Exception as error:
            attempt.error = error
        else:
            self._pass.handled_at_ms.update(dict.fromkeys((m.topic for m in attempt.taken), self._world.wall_ms()))
        return attempt

    patches.replace(f"{_INBOX}._attempt", _attempt)


@planted_bug(
    needs="a clock that leaps back, or two credit services with different clocks",
    breaks=Promise.NOTHING_PENDING,
    noticed_by="tests/component/databases/test_inbox.py::test_a_clock_that_went_back_hides_no_new_message",
    seed=48,
)
def floor_kept(patches: Patches) -> None:
    """A worker never looks for messages that are older than the last ones that it took."""

    def _floor_ms(self: Any) -> int:
        floor_ms: int = self._pass.floor_ms
        return floor_ms

    patches.replace(f"{_INBOX}._floor_ms", _floor_ms)


@planted_bug(
    needs="a database that refuses statements for some seconds",
    breaks=Promise.BOOKS_AGREE,
    noticed_by="tests/component/databases/test_inbox.py::test_a_rule_that_refuses_all_costs_time_and_no_attempts",
    seed=168,
)
def outage_counted(patches: Patches) -> None:
    """Each failure of a message counts, also in an outage in which no message is processed."""
    fails = patches.original(f"{_INBOX}._fails")

    def _fails(self: Any, message: InboxMessage, error: Exception, max_tries: int) -> dict[str, Any]:
        self._pass.handled_at_ms[message.topic] = self._world.wall_ms() + 1
        values: dict[str, Any] = fails(self, message, error, max_tries)
        if message.failed_at_ms is None:
            values["attempts"] = message.attempts + 1
            if values["attempts"] >= max_tries:
                values["status"] = InboxStatus.PARKED.value
        return values

    patches.replace(f"{_INBOX}._fails", _fails)


@planted_bug(
    needs="an order that fails while others pass, where refused orders are not cancelled",
    breaks=Promise.STORED_IS_PROCESSED,
    noticed_by="tests/component/databases/test_inbox.py::test_a_message_is_parked_after_failures_beside_others_that_pass",
    seed=233,
)
def parked_removed(patches: Patches) -> None:
    """A message that would be parked is removed from the inbox."""
    record = patches.original(f"{_FAILING}._record")

    def _record(self: Any, message: InboxMessage, error: Exception) -> None:
        record(self, message, error)
        if message.key in {parked.key for parked in self.inbox.parked()}:
            self.inbox.done([message.key])

    patches.replace(f"{_FAILING}._record", _record)


@planted_bug(
    needs="an order that kills each process that credits it",
    breaks=Promise.NOTHING_PENDING,
    noticed_by="tests/component/databases/test_inbox.py::test_a_message_that_kills_its_process_is_tried_alone_and_is_parked_after_the_others_passed",
    seed=297,
)
def attempt_not_recorded(patches: Patches) -> None:
    """After a process of the worker was killed, messages are tried one by one, and no attempt is recorded before it begins."""

    def _record_before(self: Any, message: InboxMessage) -> bool:
        return True

    patches.replace(f"{_FAILING}._record_before", _record_before)


@planted_bug(
    needs="a message that fails alone, and no later one",
    breaks=Promise.NOTHING_PENDING,
    noticed_by="tests/lab/simulation/test_shop.py::test_an_order_that_cannot_be_credited_waits_alone_and_passes_when_it_can",
    seed=30,
)
def failed_not_due(patches: Patches) -> None:
    """The credit service sends tasks for new messages only, not for those that failed and are due again."""

    def _has_due(self: Any, transaction: Any, now_ms: int) -> bool:
        is_new = INBOX.c.consumer == self.consumer, INBOX.c.status == InboxStatus.NEW.value
        return bool(transaction.connection().execute(select(exists().where(*is_new))).scalar())

    patches.replace(f"{_TABLE}._has_due", _has_due)


@planted_bug(
    needs="a producer that uses an id twice, which the order service does not",
    breaks=Promise.ORDER_HAS_CREDIT,
    noticed_by="tests/component/databases/test_inbox.py::test_two_messages_with_one_id_of_their_producer_are_both_processed",
    seed=None,
)
def key_of_producer(patches: Patches) -> None:
    """The inbox identifies a message by its producer's id alone."""
    key_of = patches.original(f"{_INBOX}.key_of")

    def key_by_producer(self: Any, message: Message) -> str:
        key: str = message.transaction_id or key_of(self, message)
        return key

    patches.replace(f"{_INBOX}.key_of", key_by_producer)


@planted_bug(
    needs="a task that is lost, or a worker that dies with it",
    breaks=Promise.NOTHING_PENDING,
    noticed_by="tests/lab/simulation/test_shop.py::test_a_task_that_is_lost_doubled_or_late_credits_its_orders_once",
    seed=1,
)
def task_sent_once(patches: Patches) -> None:
    """While messages wait, the credit service sends no further task."""
    target = "credit_service.adapters.drain_task:TaskSender.send_if_due"
    send = patches.original(target)

    def send_if_due(self: Any) -> bool:
        if not self.inbox.is_due():
            vars(self)["has_sent"] = False
        elif not vars(self).get("has_sent"):
            send(self)
            vars(self)["has_sent"] = True
        return False

    patches.replace(target, send_if_due)


@planted_bug(
    needs="an order that fails while others pass",
    breaks=Promise.ORDER_HAS_CREDIT,
    noticed_by="tests/unit/credit_service/test_crediting.py::test_a_refusal_closes_the_order_and_reports_it_under_the_request_s_id",
    seed=310,
)
def refusal_not_reported(patches: Patches) -> None:
    """An order that cannot be credited is closed in the ledger, and the order service gets no report."""

    def _report(self: Any, session: Any, message: InboxMessage, credit: Credit, reason: str) -> None:
        return None

    patches.replace(f"{_CREDITING}._report", _report)


@planted_bug(
    needs="an order that fails while others pass",
    breaks=Promise.STORED_IS_PROCESSED,
    noticed_by="tests/component/credit_service/test_crediting.py::test_a_refused_order_is_closed_and_reported_in_one_transaction",
    seed=310,
)
def refusal_not_closed(patches: Patches) -> None:
    """The order service gets the report that an order is refused, and the ledger does not close it."""

    def annul(self: Any, session: Session, credit: Credit) -> None:
        return None

    patches.replace(f"{_LEDGER}.annul", annul)


@planted_bug(
    needs="a broker that does not answer when an order is refused or short",
    breaks=Promise.ORDER_HAS_CREDIT,
    noticed_by="tests/component/service_runtime/test_outbox.py::test_a_message_that_the_broker_does_not_confirm_is_sent_later_and_blocks_no_other",
    seed=207,
)
def outbox_removed_unsent(patches: Patches) -> None:
    """A message leaves the outbox before the broker has confirmed it."""

    def send_due(self: Any) -> bool:
        due = self.rows.due()
        for row in due:
            self.rows.done([row.key])
            try:
                self.send(Message(topic=row.topic, body=row.body, properties=row.properties))
            except NotSent:
                return False
        return bool(due)

    patches.replace("service_runtime.inbox.outbox:OutboxDrain.send_due", send_due)
