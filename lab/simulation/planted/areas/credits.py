"""Bugs planted in the credit service."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from sqlmodel import Session, col, select

from credit_service.adapters import ledger
from credit_service.adapters.credit_wire import to_wire
from credit_service.adapters.tables import BalanceRow
from credit_service.domain.credit import Credit, CreditOutcome
from credit_service.service_layer.crediting import CreditingUnavailable
from credit_service.service_layer.patient_crediting import _Failure
from lab.simulation.judges.violation import Promise
from lab.simulation.planted.bug import Planted, PlantedArea
from lab.simulation.planted.patches import Patches
from order_messages.states import EntryKind
from service_runtime.database.database_errors import DatabaseFailure

_LEDGER: Final = "credit_service.adapters.ledger:Ledger"
_MAX_OUTAGE_S: Final = 60.0


def _add_duplicates_to_balances(patches: Patches) -> None:
    def _credit_in_one_transaction(self: Any, credits: Sequence[Credit]) -> list[CreditOutcome]:
        by_key = ledger._first_of_each_key(credits)
        with self._sessions.writing() as session:
            inserted = self._insert_missing(session, by_key)
            self._add_to_balances(session, by_key.values())
            return ledger._outcomes(credits, by_key, inserted, ledger._stored_credits(session, by_key.keys() - inserted))

    patches.replace(f"{_LEDGER}._credit_in_one_transaction", _credit_in_one_transaction)


def _take_a_taken_task_for_done(patches: Patches) -> None:
    target = "credit_service.adapters.celery_crediting:CeleryCrediting.credit"
    send = patches.original(target)

    def credit(
        self: Any, credits: Sequence[Credit], *, is_again: bool, is_given_up: Callable[[], bool]
    ) -> list[CreditOutcome | None]:
        try:
            outcomes: list[CreditOutcome | None] = send(self, credits, is_again=is_again, is_given_up=is_given_up)
        except CreditingUnavailable as error:
            content = json.dumps([to_wire(each) for each in credits], sort_keys=True)
            task_id = self._unanswered.get(content)
            if not str(error).startswith("no answer") or is_given_up() or task_id is None or self._tasks.is_waiting(task_id):
                raise
            return [CreditOutcome.ALREADY_CREDITED] * len(credits)
        return outcomes

    patches.replace(target, credit)


def _answer_in_the_order_of_keys(patches: Patches) -> None:
    write = patches.original(f"{_LEDGER}.credit")

    def credit(self: Any, credits: Sequence[Credit]) -> list[CreditOutcome]:
        try:
            outcomes: list[CreditOutcome] = self._credit_with_retries(credits)
        except (DatabaseFailure, ledger.CreditNotStored) as failure:
            if not ledger._refuses_a_credit(failure) or len(credits) == 1:
                outcomes = write(self, credits)
            else:
                outcomes = [outcome for each in sorted(credits, key=lambda entry: entry.key) for outcome in self.credit([each])]
        return outcomes

    patches.replace(f"{_LEDGER}.credit", credit)


def _end_a_long_hold(patches: Patches) -> None:
    target = "credit_service.service_layer.patient_crediting:PatientCrediting._try"
    attempt = patches.original(target)

    def _try(self: Any, part: Any, credits: Sequence[Credit], held: Any, context: Any) -> Any:
        result = attempt(self, part, credits, held, context)
        holding = self.holds.state()
        if isinstance(result, _Failure) and holding is not None and holding.held_for_s > _MAX_OUTAGE_S:
            return [CreditOutcome.ALREADY_CREDITED] * (part.end - part.begin)
        return result

    patches.replace(target, _try)


def _skip_credits_of_cancelled_orders(patches: Patches) -> None:
    def _credit_in_one_transaction(self: Any, credits: Sequence[Credit]) -> list[CreditOutcome]:
        by_key = ledger._first_of_each_key(credits)
        with self._sessions.writing() as session:
            reversals = {(order_id, EntryKind.REVERSAL) for order_id, kind in by_key if kind is EntryKind.CREDIT}
            cancelled = {order_id for order_id, _ in ledger._stored_credits(session, reversals)}
            skipped = {key: each for key, each in by_key.items() if key[1] is EntryKind.CREDIT and key[0] in cancelled}
            wanted = {key: each for key, each in by_key.items() if key not in skipped}
            inserted = self._insert_missing(session, wanted)
            self._add_to_balances(session, [wanted[key] for key in inserted])
            stored = ledger._stored_credits(session, wanted.keys() - inserted)
            return ledger._outcomes(credits, by_key, inserted, {**stored, **skipped})

    patches.replace(f"{_LEDGER}._credit_in_one_transaction", _credit_in_one_transaction)


def _read_balances_before_the_transaction(patches: Patches) -> None:
    def _credit_in_one_transaction(self: Any, credits: Sequence[Credit]) -> list[CreditOutcome]:
        by_key = ledger._first_of_each_key(credits)
        customers = {each.customer for each in credits}
        with self._sessions.reading() as session:
            rows = session.exec(select(BalanceRow).where(col(BalanceRow.customer).in_(customers)))
            balances = {row.customer: row.points for row in rows}
        with self._sessions.writing() as session:
            inserted = self._insert_missing(session, by_key)
            _set_balances(self, session, balances, [by_key[key] for key in inserted])
            return ledger._outcomes(credits, by_key, inserted, ledger._stored_credits(session, by_key.keys() - inserted))

    patches.replace(f"{_LEDGER}._credit_in_one_transaction", _credit_in_one_transaction)


def _set_balances(self: Any, session: Session, balances: dict[str, int], credits: Iterable[Credit]) -> None:
    for each in credits:
        balances[each.customer] = balances.get(each.customer, 0) + each.points
    for customer in sorted({each.customer for each in credits}):
        points = balances[customer]
        statement = self._sessions.insert(BalanceRow).values(customer=customer, points=points)
        session.execute(statement.on_conflict_do_update(index_elements=["customer"], set_={"points": points}))


PLANTED: Final = (
    Planted(
        "duplicates-added",
        PlantedArea.CREDITS,
        "The balance grows by all entries of a batch, also by those that the ledger had already.",
        "a task that runs twice, or a message that is delivered twice",
        Promise.BALANCE_IS_SUM,
        _add_duplicates_to_balances,
    ),
    Planted(
        "taken-task-counts-as-done",
        PlantedArea.CREDITS,
        "A task without an answer counts as done when it no longer waits in Redis, and its messages are acknowledged.",
        "a task that is lost, or a worker that dies with it",
        Promise.ORDER_HAS_CREDIT,
        _take_a_taken_task_for_done,
    ),
    Planted(
        "outcomes-in-key-order",
        PlantedArea.CREDITS,
        "After a refusal, the outcomes of a batch come in the order of its keys, not in that of its orders.",
        "a database that refuses one order of a batch by a rule",
        Promise.ORDER_HAS_CREDIT,
        _answer_in_the_order_of_keys,
    ),
    Planted(
        "long-hold-counts-as-done",
        PlantedArea.CREDITS,
        "Orders that are held for more than a minute are acknowledged, in the belief that their task waits in Redis.",
        "an outage of more than a minute, and a task that is lost or was never sent",
        Promise.ORDER_HAS_CREDIT,
        _end_a_long_hold,
    ),
    Planted(
        "credit-after-reversal-skipped",
        PlantedArea.CREDITS,
        "The credit of an order whose reversal came first is left out, and the reversal stays.",
        "a cancellation that overtakes its order",
        Promise.BOOKS_AGREE,
        _skip_credits_of_cancelled_orders,
    ),
    Planted(
        "balance-read-before",
        PlantedArea.CREDITS,
        "The balance is read before the database transaction that writes it, so that one of two writers is lost.",
        "two batches of one customer at the same time",
        Promise.BALANCE_IS_SUM,
        _read_balances_before_the_transaction,
    ),
)
