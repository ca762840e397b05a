"""Repairs the ledger for the reconciliation. A repair reverses a credit, or recomputes a balance from the customer's entries.

Repeating a repair changes nothing: an order has at most one reversal, and a correct balance stays the same. A reversal contains
the id of its repair instead of a message id. Entries are never changed.
"""

import logging
from dataclasses import dataclass

from sqlalchemy import Engine, func
from sqlmodel import Session, col, select

from credit_service.adapters.ledger import Ledger
from credit_service.adapters.tables import BalanceRow, CreditRow
from credit_service.domain.credit import Credit, CreditOutcome, points_for
from order_messages.states import BY_REPAIR, EntryKind
from rocketmq_broker.world import World
from service_runtime.database.sessions import Sessions

logger = logging.getLogger(__name__)


class RepairRefused(Exception):
    """Raised if the ledger differs from what the request expects. Nothing was changed."""


class NothingToRepair(RepairRefused):
    """Raised if the ledger does not contain this credit or customer."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """A customer's balance before and after a repair. `is_new` is True if the repair changed something."""

    customer: str
    points_before: int | None
    """The balance before the repair; None if the customer had none."""
    points_after: int
    is_new: bool


class Repairs:
    """Repairs a ledger. Safe to use from several threads and processes. All methods raise DatabaseFailure."""

    def __init__(self, engine: Engine, world: World) -> None:
        """Creates repairs. `engine` must be a result of `service_runtime.database.opening.open_database`."""
        self._ledger = Ledger(engine, world)
        self._sessions = Sessions(engine, now_s=world.steady_s, acquire=world.acquire)

    def reverse(self, repair_id: str, order_id: str, amount_cents: int) -> Repaired:
        """Writes the reversal of an order's credit durably. The amount of the credit must equal `amount_cents`.

        Raises NothingToRepair or RepairRefused.
        """
        with self._sessions.writing() as session:
            customer = _creditor(session, order_id, amount_cents)
            before = _balance(session, customer)
            reversal = Credit(
                order_id=order_id,
                customer=customer,
                amount_cents=amount_cents,
                message_id=BY_REPAIR + repair_id,
                transaction_id=None,
                kind=EntryKind.REVERSAL,
            )
            (outcome,) = self._ledger.write(session, [reversal])
            if outcome not in (CreditOutcome.CREDITED, CreditOutcome.ALREADY_CREDITED):
                raise RepairRefused(
                    f"the ledger has a reversal of order {order_id} for another amount or customer: compare it with the plan"
                )
            after = _balance(session, customer) or 0
        is_new = outcome is CreditOutcome.CREDITED
        if is_new:
            logger.warning("repair %s reversed the credit of order %s for %d cents", repair_id, order_id, amount_cents)
        return Repaired(customer, before, after, is_new)

    def rebuild_balance(self, repair_id: str, customer: str) -> Repaired:
        """Sets the customer's balance durably to the sum of the entries. Raises NothingToRepair."""
        with self._sessions.writing() as session:
            before = _balance(session, customer)
            # Writers of entries change the balance last, in the same transaction. So the sum is stable while the row is locked.
            empty = {"customer": customer, "points": 0}
            session.execute(self._sessions.insert(BalanceRow).values(empty).on_conflict_do_nothing(index_elements=["customer"]))
            row = session.exec(select(BalanceRow).where(col(BalanceRow.customer) == customer).with_for_update()).one()
            entries, points = _sum(session, customer)
            if before is None and not entries:
                raise NothingToRepair(f"the ledger has no entry of customer {customer}")
            is_new = before is None or row.points != points
            row.points = points
            session.add(row)
        if is_new:
            logger.warning("repair %s rebuilt a balance: %s points before, %d after", repair_id, before, points)
        return Repaired(customer, before, points, is_new)


def _creditor(session: Session, order_id: str, amount_cents: int) -> str:
    """Returns the customer who received the order's credit. Raises NothingToRepair or RepairRefused."""
    of_order = select(CreditRow).where(col(CreditRow.order_id) == order_id, col(CreditRow.kind) == EntryKind.CREDIT.value)
    row = session.exec(of_order).first()
    if row is None:
        raise NothingToRepair(f"the ledger has no credit of order {order_id}")
    if row.amount_cents != amount_cents:
        raise RepairRefused(f"the credit of order {order_id} is for {row.amount_cents} cents, not {amount_cents}")
    if row.points != points_for(row.amount_cents):
        raise RepairRefused(
            f"the credit of order {order_id} has {row.points} points, "
            f"but its {row.amount_cents} cents are worth {points_for(row.amount_cents)}"
        )
    return row.customer


def _balance(session: Session, customer: str) -> int | None:
    return session.exec(select(BalanceRow.points).where(col(BalanceRow.customer) == customer)).first()


def _sum(session: Session, customer: str) -> tuple[int, int]:
    """Returns the number of the customer's entries, and the sum of their points."""
    statement = select(func.count(), func.coalesce(func.sum(col(CreditRow.points)), 0)).where(col(CreditRow.customer) == customer)
    entries, points = session.exec(statement).one()
    return int(entries), int(points)
