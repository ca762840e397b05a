"""The ledger of credits and reversals, and the balances. A balance is always the sum of the points of its entries.

There is at most one entry for each order and kind. In one database transaction, a batch inserts the missing entries and adds only
the points of the inserted ones to the balances. A redelivery therefore changes nothing, even if two workers process the same
orders at the same time. Rows are written in key order, so that batches cannot deadlock. A reversal may be written before its
credit.

The same database contains the inbox, in which messages wait to be credited, and the outbox with messages to the order service.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry
from sqlalchemy import Engine, func, tuple_
from sqlmodel import Session, col, select

from credit_service.adapters.tables import POSITIONS, BalanceRow, CreditDatabase, CreditRow
from credit_service.domain.credit import Credit, CreditOutcome
from credit_service.service_layer.crediting import HasEntries, entry_of
from order_messages.states import EntryKind
from rocketmq_broker.databases.missing_rows import insert_missing
from rocketmq_broker.databases.sqlalchemy import Inbox
from rocketmq_broker.message import Message, MessageExt
from rocketmq_broker.world import World
from service_runtime.database.sessions import Sessions
from service_runtime.messaging.positions import Positions

EntryKey = tuple[str, EntryKind]
"""The key of an entry: the order id and the kind."""
ResultKey = tuple[str, str, EntryKind]
"""The key of a stored message: the key of its row in the inbox, and the key of its entry in the ledger."""
OpensSession = Callable[[], AbstractContextManager[Session]]
CONSUMER: Final = "credit_service"
"""The consumer group, and the consumer of the inbox."""
REFUSALS: Final = "credit_service.refusals"
"""The consumer of the outbox, which contains messages to the order service."""
_AFTER_A_SETBACK: Final = "Repairs that were applied since are lost: run the reconciliation"
_CREDITS: Final = CreditDatabase.metadata.tables["credits"]
_BALANCES: Final = CreditDatabase.metadata.tables["balances"]


class CreditNotStored(Exception):
    """Raised if the database accepted a row but did not store it, because of a trigger or a rule. Nothing was written."""


@dataclass(frozen=True, slots=True)
class CustomerCredit:
    """A customer's balance and latest entries, newest first."""

    customer: str
    points: int
    entries: tuple[CreditRow, ...]


class Ledger:
    """The credit database. Safe to use from several threads and processes."""

    def __init__(self, engine: Engine, world: World, metrics: CollectorRegistry | None = None) -> None:
        """Creates a ledger. `engine` must be a result of `service_runtime.database.opening.open_database`."""
        self._world = world
        self._sessions = Sessions(engine, now_s=world.steady_s, acquire=world.acquire, reads_one_moment=True)
        adding = self._sessions.insert(_BALANCES)
        added = _BALANCES.c.points + adding.excluded.points
        self._add_points = adding.on_conflict_do_update(index_elements=["customer"], set_={"points": added})
        """The statement that adds points to balances. It is built once, because building it takes longer than executing it."""
        self.positions = Positions[ResultKey](
            self._sessions, POSITIONS, has_all=self._has_all_results, service="credit", to_do=_AFTER_A_SETBACK, metrics=metrics
        )
        """The positions of the consumer group in this database."""
        self.inbox = self.inbox_through(lambda sessions: sessions())
        """The messages that wait to be credited."""
        self.refusals = Inbox(self._sessions.writing, REFUSALS, world, reading=self._sessions.reading)
        """The messages to the order service that wait to be sent."""

    def inbox_through(self, around: Callable[[OpensSession], AbstractContextManager[Session]]) -> Inbox[Session]:
        """Returns the inbox. To open a session for writing, the inbox calls `around` with the function that opens the session."""
        writing, reading = self._sessions.writing, self._sessions.reading
        return Inbox(lambda: around(writing), CONSUMER, self._world, reading=reading)

    def store(self, messages: Sequence[MessageExt]) -> None:
        """Stores messages durably in the inbox. Raises DatabaseFailure."""
        self.inbox.put(messages)
        self.positions.acknowledging([(self.inbox.key_of(message), *entry_of(message).key) for message in messages])

    def write(self, session: Session, credits: Sequence[Credit]) -> list[CreditOutcome]:
        """Writes the missing entries, and adds their points to the balances, in the caller's database transaction.

        Returns the outcome of each of the `credits`, in the same order. Raises CreditNotStored, or the database's error if
        the database refuses a row.
        """
        by_key = _first_of_each_key(credits)
        # The reversal of a refused order exists. A rule that refused the order may refuse this one before the key conflicts.
        closed = _stored_credits(session, [key for key in by_key if key[1] is EntryKind.REVERSAL])
        inserted = self._insert_missing(session, {key: credit for key, credit in by_key.items() if key not in closed})
        self._add_to_balances(session, [by_key[key] for key in inserted])
        stored = closed | _stored_credits(session, by_key.keys() - inserted - closed.keys())
        return _outcomes(credits, by_key, inserted, stored)

    def annul(self, session: Session, credit: Credit) -> None:
        """Closes an order that cannot be credited, with a credit and a reversal of amount 0.

        Writes in the caller's database transaction. Raises HasEntries if the order already has other entries.
        """
        pair = {entry.key: entry for entry in credit.annulled()}
        inserted = self._insert_missing(session, pair)
        if not all(entry.is_annulled for entry in _stored_credits(session, pair.keys() - inserted).values()):
            raise HasEntries(
                f"cannot close order {credit.order_id} without a credit: the ledger already contains other entries of the order"
            )
        self._add_to_balances(session, [pair[key] for key in inserted])

    def report(self, session: Session, message: Message) -> None:
        """Stores a message in the outbox, in the caller's database transaction."""
        self.refusals.put_in(session, [message])

    def _insert_missing(self, session: Session, by_key: Mapping[EntryKey, Credit]) -> set[EntryKey]:
        """Inserts the missing entries. Returns the keys of the inserted ones."""
        now_ms = self._world.wall_ms()
        rows = [entry_values(by_key[key], now_ms) for key in sorted(by_key)]
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

    def _has_all_results(self, session: Session, keys: Collection[ResultKey]) -> bool:
        """Returns True if each message is in the inbox or in the ledger.

        The inbox is read first, because messages move from the inbox to the ledger.
        """
        kept = self.inbox.kept_in(session, [message_key for message_key, _, _ in keys])
        entries = {(order_id, kind) for message_key, order_id, kind in keys if message_key not in kept}
        if not entries:
            return True
        key = tuple_(col(CreditRow.order_id), col(CreditRow.kind))
        return session.exec(select(func.count()).select_from(CreditRow).where(key.in_(sorted(entries)))).one() == len(entries)

    def find_customer(self, customer: str, *, max_entries: int) -> CustomerCredit | None:
        """Returns the customer's balance and latest entries, both read from the same snapshot of the database.

        Returns None if there is no balance. Raises DatabaseUnavailable.
        """
        latest = select(CreditRow).where(col(CreditRow.customer) == customer).order_by(col(CreditRow.id).desc())
        with self._sessions.reading() as session:
            balance = session.get(BalanceRow, customer)
            if balance is None:
                return None
            return CustomerCredit(customer, balance.points, tuple(session.exec(latest.limit(max_entries))))

    def find_order(self, order_id: str) -> tuple[CreditRow, ...]:
        """Returns the order's entries, oldest first. An order may have a credit and a reversal."""
        entries = select(CreditRow).where(col(CreditRow.order_id) == order_id).order_by(col(CreditRow.id))
        with self._sessions.reading() as session:
            return tuple(session.exec(entries))

    def last_written(self) -> int:
        """Returns the id of the last entry."""
        with self._sessions.reading() as session:
            return session.exec(select(func.max(col(CreditRow.id)))).one() or 0

    def why_unready(self) -> str | None:
        """Returns the reason why rows cannot be written now, in one line; None if they can."""
        return self._sessions.why_unwritable(CreditDatabase.metadata.sorted_tables)


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
            raise CreditNotStored(
                f"cannot store the {credit.kind} of order {credit.order_id}: the row was neither inserted nor found"
            )
        outcomes.append(_outcome_beside(credit, in_the_ledger))
    return outcomes


def _outcome_beside(credit: Credit, in_the_ledger: Credit) -> CreditOutcome:
    if credit.is_redelivery_of(in_the_ledger):
        return CreditOutcome.ALREADY_CREDITED
    return CreditOutcome.REFUSED if in_the_ledger.is_annulled else CreditOutcome.CONFLICTING


def entry_values(credit: Credit, now_ms: int) -> dict[str, object]:
    """Returns the row of a new entry. `now_ms` is the time of its creation, in milliseconds since the epoch."""
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
