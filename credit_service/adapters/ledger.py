"""The ledger of credits and reversals, and the balances. A balance is always the sum of the points of its entries.

An entry is unique by order and kind. In one database transaction, a batch inserts the missing entries and adds only the points of
the inserted ones to the balances. So a redelivery changes nothing, even if two workers process the same orders at the same time.
Rows are written in key order, so that batches cannot deadlock. A reversal may be written before its credit.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Engine, func, tuple_
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlmodel import Session, col, select

from credit_service.adapters.tables import POSITIONS, BalanceRow, CreditDatabase, CreditRow
from credit_service.domain.credit import Credit, CreditOutcome
from order_messages.states import BY_REFUSAL, BY_REPAIR, EntryKind
from rocketmq_broker.databases.missing_rows import insert_missing
from rocketmq_broker.world import World
from service_runtime.database.constraints import is_duplicate
from service_runtime.database.database_errors import DatabaseFailure, DatabaseRefusal
from service_runtime.database.positions import Positions
from service_runtime.database.sessions import Sessions
from service_runtime.observing.log_context import logging_about

logger = logging.getLogger(__name__)

EntryKey = tuple[str, EntryKind]
"""The key of an entry: the order id and the kind."""
_CREDITS: Final = CreditDatabase.metadata.tables["credits"]
_MAX_TRIES: Final = 3
_TRY_FOR_S: Final = 5.0
_MIN_PAUSE_S: Final = 0.05
_MAX_PAUSE_S: Final = 0.5
_KEYS_AT_ONCE: Final = 500
_BALANCES: Final = CreditDatabase.metadata.tables["balances"]


class LedgerUnavailable(Exception):
    """The database is unavailable or lacks this version's tables. The error is independent of the credits.

    Consumers of other versions recognize this error by its name; see `service_layer.faults`.
    """


class CreditNotStored(Exception):
    """The database accepted a row but did not store it, because of a trigger or a rule. Nothing was written."""


class _HasEntries(Exception):
    """The order already has entries. Nothing was written."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """An entry in the ledger, as read from the database."""

    order_id: str
    kind: EntryKind
    points: int
    """The points of the entry, negative for a reversal."""
    amount_cents: int
    created_at_ms: int
    customer: str
    message_id: str
    """The id of the message from which the entry was written."""
    transaction_id: str | None


@dataclass(frozen=True, slots=True)
class CustomerCredit:
    """A customer's balance and latest entries, newest first."""

    customer: str
    points: int
    entries: tuple[LedgerEntry, ...]


def _may_pass(failure: Exception) -> bool:
    """Returns True if an immediate retry may help, because the connection broke or the rows were locked."""
    return isinstance(failure, DatabaseFailure) and isinstance(failure.__cause__, OperationalError)


class Ledger:
    """The credit database. Safe to use from several threads and processes."""

    def __init__(self, engine: Engine, world: World) -> None:
        """`engine` comes from `service_runtime.database.opening.open_database`."""
        self._world = world
        self._sessions = Sessions(engine, now_s=world.steady_s, acquire=world.acquire, reads_one_moment=True)
        adding = self._sessions.insert(_BALANCES)
        added = _BALANCES.c.points + adding.excluded.points
        self._add_points = adding.on_conflict_do_update(index_elements=["customer"], set_={"points": added})
        """The statement that adds points to balances. It is built once, because building it takes longer than executing it."""
        self.positions = Positions[EntryKey](self._sessions, POSITIONS, has_all=_has_all_entries)
        """The positions of the consumer group in this database."""

    def credit(self, credits: Sequence[Credit]) -> list[CreditOutcome]:
        """Writes a batch of credits and reversals, which are durable on return. Returns their outcomes in the same sequence.

        If the database refuses the batch, each entry is written alone, so that a refused one does not block the others. Raises
        LedgerUnavailable; nothing may be acknowledged then, and a retry is safe whether or not the batch was written.
        """
        try:
            return self._credit_with_retries(credits)
        except (DatabaseFailure, CreditNotStored) as failure:
            if not _refuses_a_credit(failure):
                raise LedgerUnavailable(str(failure)) from failure
            if len(credits) > 1:
                return [outcome for credit in credits for outcome in self.credit([credit])]
            (credit,) = credits
            with logging_about(request_id=credit.request_id, order_id=credit.order_id, transaction_id=credit.transaction_id):
                logger.error("the database refuses the %s of order %s: %s", credit.kind, credit.order_id, failure)
            return [CreditOutcome.IMPOSSIBLE]

    def _credit_with_retries(self, credits: Sequence[Credit]) -> list[CreditOutcome]:
        """Retries after random pauses, so that two conflicting batches do not collide again."""
        ends_s = self._world.steady_s() + _TRY_FOR_S
        for _ in range(_MAX_TRIES - 1):
            try:
                return self._credit_in_one_transaction(credits)
            except DatabaseFailure as failure:
                pause_s = self._world.random.uniform(_MIN_PAUSE_S, _MAX_PAUSE_S)
                if not _may_pass(failure) or self._world.steady_s() + pause_s > ends_s:
                    raise
                self._world.sleep(pause_s)
        return self._credit_in_one_transaction(credits)

    def _credit_in_one_transaction(self, credits: Sequence[Credit]) -> list[CreditOutcome]:
        by_key = _first_of_each_key(credits)
        with self._sessions.writing() as session:
            inserted = self._insert_missing(session, by_key)
            self._add_to_balances(session, [by_key[key] for key in inserted])
            return _outcomes(credits, by_key, inserted, _stored_credits(session, by_key.keys() - inserted))

    def annul(self, credit: Credit) -> bool:
        """Closes an order that cannot be credited, with a credit and a reversal of zero that are durable on return.

        Returns False without changes if the order already has entries, or if the database refuses these two as well. Raises
        DatabaseFailure if the database fails for another reason.
        """
        pair = {entry.key: entry for entry in credit.annulled()}
        try:
            with self._sessions.writing() as session:
                inserted = self._insert_missing(session, pair)
                if not all(entry.is_annulled for entry in _stored_credits(session, pair.keys() - inserted).values()):
                    raise _HasEntries
                self._add_to_balances(session, [pair[key] for key in inserted])
        except _HasEntries:
            return False
        except DatabaseFailure as failure:
            if _refuses_a_credit(failure):
                return False
            raise
        return True

    def _insert_missing(self, session: Session, by_key: Mapping[EntryKey, Credit]) -> set[EntryKey]:
        """Inserts the missing entries. Returns the keys of the inserted ones."""
        now_ms = self._world.wall_ms()
        rows = [_values(by_key[key], now_ms) for key in sorted(by_key)]
        inserted = insert_missing(session.connection(), _CREDITS, rows, ["order_id", "kind"])
        return {(order_id, EntryKind(kind)) for order_id, kind in inserted}

    def _add_to_balances(self, session: Session, credits: Iterable[Credit]) -> None:
        points: Counter[str] = Counter()
        for credit in credits:
            points[credit.customer] += credit.points
        if not points:
            return
        rows = [{"customer": customer, "points": points[customer]} for customer in sorted(points)]
        session.connection().execute(self._add_points, rows)

    def find_customer(self, customer: str, *, max_entries: int) -> CustomerCredit | None:
        """Returns a consistent balance and its latest entries; None if there is no balance. Raises DatabaseUnavailable."""
        latest = select(CreditRow).where(col(CreditRow.customer) == customer).order_by(col(CreditRow.id).desc())
        with self._sessions.reading() as session:
            balance = session.get(BalanceRow, customer)
            if balance is None:
                return None
            rows = session.exec(latest.limit(max_entries)).all()
            return CustomerCredit(customer, balance.points, tuple(_entry(row) for row in rows))

    def find_order(self, order_id: str) -> tuple[LedgerEntry, ...]:
        """Returns the order's entries, oldest first. An order may have a credit and a reversal."""
        entries = select(CreditRow).where(col(CreditRow.order_id) == order_id).order_by(col(CreditRow.id))
        with self._sessions.reading() as session:
            return tuple(_entry(row) for row in session.exec(entries))

    def last_written(self) -> int:
        """Returns the id of the last entry; see `service_runtime.failing.refusals.Elsewhere`."""
        with self._sessions.reading() as session:
            return session.exec(select(func.max(col(CreditRow.id)))).one() or 0

    def is_written_after(self, number: int, kind: str) -> bool:
        """Returns True if an entry of that kind has an id above `number`. Entries of refusals and repairs do not count."""
        id_of_message = col(CreditRow.message_id)
        of_orders = ~id_of_message.startswith(BY_REFUSAL), ~id_of_message.startswith(BY_REPAIR)
        entries = select(CreditRow.id).where(col(CreditRow.id) > number, col(CreditRow.kind) == kind, *of_orders)
        with self._sessions.reading() as session:
            return session.exec(entries.limit(1)).first() is not None

    def why_unready(self) -> str | None:
        """Returns the reason why rows cannot be written now, in one line; None if they can."""
        return self._sessions.why_unwritable(CreditDatabase.metadata.sorted_tables)


def _refuses_a_credit(failure: Exception) -> bool:
    """Returns True if the database refused the credit. A duplicate row id does not count as a refusal."""
    error = failure.__cause__
    is_number_taken = isinstance(error, DBAPIError) and is_duplicate(error, _CREDITS.c.id)
    return isinstance(failure, CreditNotStored | DatabaseRefusal) and not is_number_taken


def _first_of_each_key(credits: Sequence[Credit]) -> dict[EntryKey, Credit]:
    by_key: dict[EntryKey, Credit] = {}
    for credit in credits:
        by_key.setdefault(credit.key, credit)
    return by_key


def _stored_credits(session: Session, keys: Iterable[EntryKey]) -> dict[EntryKey, Credit]:
    if not (wanted := sorted(keys)):
        return {}
    key = tuple_(col(CreditRow.order_id), col(CreditRow.kind))
    found = [_credit(row) for row in session.exec(select(CreditRow).where(key.in_(wanted)))]
    return {credit.key: credit for credit in found}


def _has_all_entries(session: Session, keys: Collection[EntryKey]) -> bool:
    wanted = sorted(keys)
    parts = [wanted[begin : begin + _KEYS_AT_ONCE] for begin in range(0, len(wanted), _KEYS_AT_ONCE)]
    key = tuple_(col(CreditRow.order_id), col(CreditRow.kind))
    return all(
        session.exec(select(func.count()).select_from(CreditRow).where(key.in_(part))).one() == len(part) for part in parts
    )


def _outcomes(
    credits: Sequence[Credit], by_key: Mapping[EntryKey, Credit], inserted: set[EntryKey], stored: Mapping[EntryKey, Credit]
) -> list[CreditOutcome]:
    """Returns the outcomes. Raises CreditNotStored if a row was neither inserted nor found."""
    outcomes = []
    for credit in credits:
        first = by_key[credit.key]
        if credit is first and credit.key in inserted:
            outcomes.append(CreditOutcome.CREDITED)
            continue
        in_the_ledger = first if credit.key in inserted else stored.get(credit.key)
        if in_the_ledger is None:
            raise CreditNotStored(f"the {credit.kind} of order {credit.order_id} was neither inserted nor found")
        outcomes.append(_outcome_beside(credit, in_the_ledger))
    return outcomes


def _outcome_beside(credit: Credit, in_the_ledger: Credit) -> CreditOutcome:
    if credit.is_redelivery_of(in_the_ledger):
        return CreditOutcome.ALREADY_CREDITED
    return CreditOutcome.REFUSED if in_the_ledger.is_annulled else CreditOutcome.CONFLICTING


def _values(credit: Credit, now_ms: int) -> dict[str, object]:
    return {
        "order_id": credit.order_id,
        "kind": credit.kind.value,
        "customer": credit.customer,
        "points": credit.points,
        "amount_cents": credit.amount_cents,
        "message_id": credit.message_id,
        "transaction_id": credit.transaction_id,
        "created_at_ms": now_ms,
    }


def _credit(row: CreditRow) -> Credit:
    return Credit(
        order_id=row.order_id,
        customer=row.customer,
        amount_cents=row.amount_cents,
        message_id=row.message_id,
        transaction_id=row.transaction_id,
        kind=EntryKind(row.kind),
    )


def _entry(row: CreditRow) -> LedgerEntry:
    return LedgerEntry(
        order_id=row.order_id,
        kind=EntryKind(row.kind),
        points=row.points,
        amount_cents=row.amount_cents,
        created_at_ms=row.created_at_ms,
        customer=row.customer,
        message_id=row.message_id,
        transaction_id=row.transaction_id,
    )
