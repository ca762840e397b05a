"""Detects from the witnesses in half messages that the order database is an old copy.

A witness is the state of the sender's database when it sent the half message. Each process has a row in `epochs`, its epoch. A
witness contains the id of the epoch, the number last written into it (a time, at most 1 s old), and the newest transaction that
the process has committed. An older copy of the database lacks at least one of these three. When a process writes the number, it
also checks the transactions that it has committed since: a promoted standby may lack less than a second. See docs/decisions/0053.
"""

import logging
import threading
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final

from sqlalchemy import ColumnElement, CursorResult, func, update
from sqlmodel import Session, col, select

from order_messages.states import TransactionState
from order_service.adapters.tables import AdoptionRow, DatabaseIdentityRow, EpochRow, TransactionRow
from order_service.domain.history import Witness
from order_service.service_layer.order_store import HistoryDoubted
from rocketmq_broker.world import World
from service_runtime.database.database_errors import DatabaseUnavailable
from service_runtime.database.sessions import Sessions, is_taken

MAX_AGE_MS: Final = 1_000
"""The maximum age in milliseconds of the epoch's number in a half message, and the minimum time between two writes."""
_TURN_TIMEOUT_S: Final = 5.0
_MAX_ASKED: Final = 100_000
"""The maximum number of transactions of other processes that are remembered between check-backs.

If there are more, all are forgotten.
"""

logger = logging.getLogger(__name__)


class OrderHistory:
    """Provides the witness of this process, and checks other witnesses against the database. Thread-safe."""

    def __init__(self, sessions: Sessions, world: World) -> None:
        """Creates the history. `sessions` must belong to the order database."""
        self._sessions = sessions
        self._now_ms, self._new_uuid = world.wall_ms, world.new_uuid
        self._turn = threading.Lock()
        self._acquire = world.acquire
        self._epoch: Witness | None = None
        self._encoded_epoch = ""
        self._renewed_when_ms = 0
        self._committed = ""
        self._since_renewal: list[str] = []
        """The transactions that this process committed since it last wrote the epoch's number."""
        self._missing: Witness | None = None
        self._asked: set[str] = set()

    def note_local_commit(self, transaction_id: str) -> None:
        """Records a committed transaction, which the witnesses of later half messages contain."""
        self._committed = transaction_id
        self._since_renewal.append(transaction_id)

    def witness(self) -> str:
        """Returns the witness for the next half message, encoded. Queries the database at most once a second.

        Raises DatabaseFailure. Raises HistoryDoubted while the database may be an old copy, because an order stored there could
        be lost or placed twice.
        """
        epoch = self._epoch
        if epoch is None or not self._is_fresh():
            self._renew_epoch(epoch)
        if (reason := self.why_unready()) is not None:
            raise HistoryDoubted(reason)
        return self._encoded_epoch + self._committed

    def require_no_doubt(self, session: Session, witness: Witness | None) -> None:
        """Raises HistoryDoubted if a missing transaction row does not mean ROLLBACK.

        A database that lacks the witness of one half message cannot decide any half message of another process, until the
        database contains the witness or an operator adopts its history. A half message without a witness comes from an older
        version of the service, and is decided unless another witness is missing.
        """
        if witness is not None:
            if _lacks(session, witness):
                self._missing = witness
            elif self._epoch is not None and witness.epoch_id == self._epoch.epoch_id:
                return
        if (reason := self._standing_doubt(session)) is not None:
            raise HistoryDoubted(reason)

    def was_asked_before(self, transaction_id: str, witness: Witness | None) -> bool:
        """Returns True if this process sent the half message or received an earlier check-back for it. Records the check-back.

        An old copy may contain the witness of an unpaid order although the order has been paid since. Between two check-backs of
        one transaction the broker checks all other pending transactions, so a missing witness is found before the second
        check-back.
        """
        is_own = witness is None or (self._epoch is not None and witness.epoch_id == self._epoch.epoch_id)
        if is_own or transaction_id in self._asked:
            self._asked.discard(transaction_id)
            return True
        if len(self._asked) >= _MAX_ASKED:
            self._asked.clear()
        self._asked.add(transaction_id)
        return False

    def why_unready(self) -> str | None:
        """Returns the reason why this may be the wrong database or an old copy, or None. Never raises an error."""
        missing = self._missing
        if missing is None:
            return None
        try:
            with self._sessions.reading() as session:
                return self._standing_doubt(session)
        except DatabaseUnavailable:
            return f"the order database lacked a witness of database {missing.database_id}, and does not answer now"

    def compare(self, newest: Callable[[], list[Witness]]) -> None:
        """Checks the newest witnesses that have this database's id. If one is missing, the database accepts no more orders.

        Never raises an error. Does not call `newest` if the database has never stored an order. Witnesses of other databases are
        checked at check-backs.
        """
        try:
            with self._sessions.reading() as session:
                own = session.exec(select(DatabaseIdentityRow.database_id).where(select(EpochRow).exists())).first()
            witnesses = [] if own is None else [witness for witness in newest() if witness.database_id == own]
            with self._sessions.reading() as session:
                missing = _first_lacked(session, witnesses)
        except DatabaseUnavailable as error:
            logger.warning("could not compare the order database with the newest messages: %s", error)
            return
        if missing is not None:
            self._missing = missing
            logger.error(
                "the order database is an old copy: it lacks rows that the broker's message of transaction %s names; "
                "orders are refused until you restore the current database or run adopt-history",
                missing.published_id,
            )

    def adopt(self, reason: str) -> int:
        """Allows this database to decide all half messages sent until now, regardless of their witness.

        Returns the time of the adoption in milliseconds.
        """
        now_ms = self._now_ms()
        with self._sessions.writing() as session:
            session.add(AdoptionRow(adopted_at_ms=now_ms, reason=reason))
        return now_ms

    def _is_fresh(self) -> bool:
        return 0 <= self._now_ms() - self._renewed_when_ms < MAX_AGE_MS

    def _renew_epoch(self, known: Witness | None) -> None:
        """Writes a new number into the epoch's row. Does nothing if another thread is writing it and the row already exists."""
        has_turn = is_taken(self._turn, _TURN_TIMEOUT_S, self._acquire) if known is None else self._turn.acquire(blocking=False)
        if not has_turn:
            if known is None:
                raise DatabaseUnavailable(
                    f"another thread of this process did not store the first row in the database within {_TURN_TIMEOUT_S:g} s"
                )
            return
        try:
            epoch = self._epoch
            if epoch is None or not self._is_fresh():
                epoch = self._written(epoch)
                self._encoded_epoch = epoch.encode()
                self._epoch = epoch
        finally:
            self._turn.release()

    def _written(self, known: Witness | None) -> Witness:
        now_ms = self._now_ms()
        number = now_ms if known is None else max(now_ms, known.renewed_at_ms + 1)
        committed, lost = list(self._since_renewal), list[str]()
        with self._sessions.writing() as session:
            if known is not None and _renew(session, known, number, committed):
                epoch = replace(known, renewed_at_ms=number)
            else:
                lost = _lacking(session, committed)
                database_id = session.exec(select(DatabaseIdentityRow.database_id)).one()
                epoch = Witness(database_id, self._new_uuid().hex, number)
                session.add(EpochRow(epoch_id=epoch.epoch_id, started_at_ms=now_ms, renewed_at_ms=number))
        del self._since_renewal[: len(committed)]
        if known is not None and known.epoch_id != epoch.epoch_id:
            # The database was replaced with another one, or with an older copy.
            self._committed, self._missing = "", replace(known, transaction_id=lost[0] if lost else "")
            if lost:
                logger.error(
                    "the order database was replaced by an older copy: it lacks at least %d recent transactions", len(lost)
                )
            else:
                logger.error(
                    "the order database was replaced, perhaps by an older copy: it lacks the row that this process wrote at %s",
                    known.renewed_at_ms,
                )
        self._renewed_when_ms = now_ms
        return epoch

    def _standing_doubt(self, session: Session) -> str | None:
        missing = self._missing
        if missing is None:
            return None
        if not _lacks(session, missing):
            self._missing = None
            return None
        own = session.exec(select(DatabaseIdentityRow.database_id)).first()
        if missing.database_id != own:
            return f"half messages name the order database {missing.database_id}, but this one is {own}"
        return (
            f"this order database, {own}, lacks what a sender wrote before it sent or committed its half message: "
            "it is an old copy, or one of two copies that both accepted orders"
        )


def _lacks(session: Session, witness: Witness) -> bool:
    return _first_lacked(session, [witness]) is not None


def _first_lacked(session: Session, witnesses: Collection[Witness]) -> Witness | None:
    """Returns the first witness that the database does not contain and that is newer than the last adoption, or None."""
    epochs = col(EpochRow.epoch_id).in_({witness.epoch_id for witness in witnesses})
    numbers = dict(session.exec(select(EpochRow.epoch_id, EpochRow.renewed_at_ms).where(epochs)).all())
    lacking = _lacking(session, {witness.transaction_id for witness in witnesses})
    is_committed = col(TransactionRow.state) == TransactionState.COMMITTED.value
    uncommitted = _lacking(session, {witness.published_id for witness in witnesses}, is_committed)
    lacked = [
        witness
        for witness in witnesses
        if numbers.get(witness.epoch_id, -1) < witness.renewed_at_ms or witness.transaction_id in lacking
    ]
    # These come last: a repeated payment can commit such a transaction in the old copy, too, which would end the doubt.
    lacked += [witness for witness in witnesses if witness.published_id in uncommitted]
    if not lacked:
        return None
    adopted_at_ms = session.exec(select(func.max(AdoptionRow.adopted_at_ms))).one()
    return next((witness for witness in lacked if adopted_at_ms is None or witness.renewed_at_ms > adopted_at_ms), None)


def _renew(session: Session, known: Witness, number: int, committed: Collection[str]) -> bool:
    """Writes the number if the database's epoch is not older than `known`, and it has the transactions that were committed since.

    Returns True if the number was written.
    """
    conditions = [col(EpochRow.epoch_id) == known.epoch_id, col(EpochRow.renewed_at_ms) >= known.renewed_at_ms]
    if committed:
        stored = select(func.count()).select_from(TransactionRow).where(*_is_stored(committed)).scalar_subquery()
        conditions.append(stored == len(set(committed)))
    done = session.execute(update(EpochRow).where(*conditions).values(renewed_at_ms=number))
    return isinstance(done, CursorResult) and done.rowcount > 0


def _is_stored(committed: Collection[str]) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Returns the conditions for the rows of committed transactions. The marker of a check-back has no order."""
    return col(TransactionRow.transaction_id).in_(committed), col(TransactionRow.order_id).is_not(None)


def _lacking(session: Session, committed: Collection[str], *conditions: ColumnElement[bool]) -> list[str]:
    """Returns the transactions without a row that fulfils the conditions. The marker of a check-back does not count as a row."""
    named = {transaction_id for transaction_id in committed if transaction_id}
    if not named:
        return []
    found = session.exec(select(TransactionRow.transaction_id).where(*_is_stored(named), *conditions)).all()
    return sorted(named.difference(found))
