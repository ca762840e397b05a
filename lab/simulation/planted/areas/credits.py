"""Bugs planted in the credit service, and in the inbox and the outbox that its messages pass through."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from sqlalchemy import exists, select
from sqlmodel import Session

from credit_service.adapters import ledger
from credit_service.adapters.tables import BalanceRow
from credit_service.domain.credit import Credit, CreditOutcome
from lab.simulation.judges.violation import Promise
from lab.simulation.planted.bug import Planted, PlantedArea
from lab.simulation.planted.patches import Patches
from order_messages.states import EntryKind
from rocketmq_broker.databases.inbox import InboxMessage, InboxStatus, _Attempt
from rocketmq_broker.databases.sqlalchemy import INBOX
from rocketmq_broker.message import Message, MessageExt
from service_runtime.inbox.outbox import NotSent

_LEDGER: Final = "credit_service.adapters.ledger:Ledger"
_CREDITING: Final = "credit_service.service_layer.crediting:Crediting"
_INBOX: Final = "rocketmq_broker.databases.inbox:BaseInbox"
_FAILING: Final = "rocketmq_broker.databases.inbox:_Failing"
_TABLE: Final = "rocketmq_broker.databases.sqlalchemy:Inbox"


def _add_duplicates_to_balances(patches: Patches) -> None:
    def write(self: Any, session: Session, credits: Sequence[Credit]) -> list[CreditOutcome]:
        by_key = ledger._first_of_each_key(credits)
        inserted = self._insert_missing(session, by_key)
        self._add_to_balances(session, by_key.values())
        return ledger._outcomes(credits, by_key, inserted, ledger._stored_credits(session, by_key.keys() - inserted))

    patches.replace(f"{_LEDGER}.write", write)


def _skip_credits_of_cancelled_orders(patches: Patches) -> None:
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


def _remember_balances(patches: Patches) -> None:
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


def _acknowledge_what_is_not_stored(patches: Patches) -> None:
    target = "service_runtime.inbox.inbox_listener:InboxListener._is_stored"
    is_stored = patches.original(target)

    def _is_stored(self: Any, messages: Sequence[MessageExt]) -> bool:
        is_stored(self, messages)
        return True

    patches.replace(target, _is_stored)


def _delete_before_the_work(patches: Patches) -> None:
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


def _keep_the_floor(patches: Patches) -> None:
    def _floor_ms(self: Any) -> int:
        floor_ms: int = self._pass.floor_ms
        return floor_ms

    patches.replace(f"{_INBOX}._floor_ms", _floor_ms)


def _count_each_failure(patches: Patches) -> None:
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


def _remove_what_would_be_parked(patches: Patches) -> None:
    record = patches.original(f"{_FAILING}._record")

    def _record(self: Any, message: InboxMessage, error: Exception) -> None:
        record(self, message, error)
        if message.key in {parked.key for parked in self.inbox.parked()}:
            self.inbox.done([message.key])

    patches.replace(f"{_FAILING}._record", _record)


def _record_no_attempt_before(patches: Patches) -> None:
    def _record_before(self: Any, message: InboxMessage) -> bool:
        return True

    patches.replace(f"{_FAILING}._record_before", _record_before)


def _ring_for_new_messages_only(patches: Patches) -> None:
    def _has_due(self: Any, transaction: Any, now_ms: int) -> bool:
        is_new = INBOX.c.consumer == self.consumer, INBOX.c.status == InboxStatus.NEW.value
        return bool(transaction.connection().execute(select(exists().where(*is_new))).scalar())

    patches.replace(f"{_TABLE}._has_due", _has_due)


def _identify_messages_by_their_producers_id(patches: Patches) -> None:
    key_of = patches.original(f"{_INBOX}.key_of")

    def key_by_producer(self: Any, message: Message) -> str:
        key: str = message.transaction_id or key_of(self, message)
        return key

    patches.replace(f"{_INBOX}.key_of", key_by_producer)


def _send_one_task_for_all(patches: Patches) -> None:
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


def _refuse_without_a_report(patches: Patches) -> None:
    def _report(self: Any, session: Any, message: InboxMessage, credit: Credit, reason: str) -> None:
        return None

    patches.replace(f"{_CREDITING}._report", _report)


def _report_a_refusal_without_closing(patches: Patches) -> None:
    def annul(self: Any, session: Session, credit: Credit) -> None:
        return None

    patches.replace(f"{_LEDGER}.annul", annul)


def _remove_messages_before_they_are_sent(patches: Patches) -> None:
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


PLANTED: Final = (
    Planted(
        "duplicates-added",
        PlantedArea.CREDITS,
        "The balance grows by all entries of a batch, also by those that the ledger had already.",
        "a message that is delivered twice",
        Promise.BALANCE_IS_SUM,
        _add_duplicates_to_balances,
    ),
    Planted(
        "credit-after-reversal-skipped",
        PlantedArea.CREDITS,
        "The credit of an order whose reversal came first is left out, and the reversal stays.",
        "a cancellation that overtakes its order",
        Promise.STORED_IS_PROCESSED,
        _skip_credits_of_cancelled_orders,
    ),
    Planted(
        "balance-remembered",
        PlantedArea.CREDITS,
        "A process of the worker remembers the balances that it wrote, and adds to those.",
        "two processes that credit one customer",
        Promise.BALANCE_IS_SUM,
        _remember_balances,
    ),
    Planted(
        "acknowledged-unstored",
        PlantedArea.CREDITS,
        "Messages are acknowledged although the database did not store them in the inbox.",
        "a database that does not answer while messages arrive",
        Promise.OFFSET_BEHIND_WORK,
        _acknowledge_what_is_not_stored,
    ),
    Planted(
        "deleted-before-work",
        PlantedArea.CREDITS,
        "Messages leave the inbox in a database transaction of their own, before their entries are written.",
        "no fault: the messages are in neither table between the two commits",
        Promise.STORED_IS_PROCESSED,
        _delete_before_the_work,
    ),
    Planted(
        "floor-kept",
        PlantedArea.CREDITS,
        "A worker never looks for messages that are older than the last ones that it took.",
        "a clock that leaps back, or two credit services with different clocks",
        Promise.NOTHING_PENDING,
        _keep_the_floor,
    ),
    Planted(
        "outage-counted",
        PlantedArea.CREDITS,
        "Each failure of a message counts, also in an outage in which no message is processed.",
        "a database that refuses statements for some seconds",
        Promise.INNOCENT_IS_KEPT,
        _count_each_failure,
    ),
    Planted(
        "parked-removed",
        PlantedArea.CREDITS,
        "A message that would be parked is removed from the inbox.",
        "an order that fails while others pass, where refused orders are not cancelled",
        Promise.STORED_IS_PROCESSED,
        _remove_what_would_be_parked,
    ),
    Planted(
        "attempt-not-recorded",
        PlantedArea.CREDITS,
        "After a process of the worker was killed, messages are tried one by one, and no attempt is recorded before it begins.",
        "an order that kills each process that credits it",
        Promise.NOTHING_PENDING,
        _record_no_attempt_before,
    ),
    Planted(
        "failed-not-due",
        PlantedArea.CREDITS,
        "The credit service sends tasks for new messages only, not for those that failed and are due again.",
        "a message that fails alone, and no later one",
        Promise.NOTHING_PENDING,
        _ring_for_new_messages_only,
    ),
    Planted(
        "key-of-producer",
        PlantedArea.CREDITS,
        "The inbox knows a message by its producer's id alone.",
        "a producer that uses an id twice, which the order service does not",
        Promise.ORDER_HAS_CREDIT,
        _identify_messages_by_their_producers_id,
    ),
    Planted(
        "task-sent-once",
        PlantedArea.CREDITS,
        "While messages wait, the credit service sends no further task.",
        "a task that is lost, or a worker that dies with it",
        Promise.NOTHING_PENDING,
        _send_one_task_for_all,
    ),
    Planted(
        "refusal-not-reported",
        PlantedArea.CREDITS,
        "An order that cannot be credited is closed in the ledger, and the order service is not told.",
        "an order that fails while others pass",
        Promise.BOOKS_AGREE,
        _refuse_without_a_report,
    ),
    Planted(
        "refusal-not-closed",
        PlantedArea.CREDITS,
        "The order service is told that an order is refused, and the ledger does not close it.",
        "an order that fails while others pass",
        Promise.STORED_IS_PROCESSED,
        _report_a_refusal_without_closing,
    ),
    Planted(
        "outbox-removed-unsent",
        PlantedArea.CREDITS,
        "A message leaves the outbox before the broker has confirmed it.",
        "a broker that does not answer when an order is refused or short",
        Promise.ORDER_HAS_CREDIT,
        _remove_messages_before_they_are_sent,
    ),
)
