"""The identity of the order database's history: the witness in half messages, and doubt where it is missing.

Each process has its own row in `epochs`, an epoch. A half message names the epoch, the last number written into it (a time, at
most 1 s before), and the newest transaction that the process has committed in the database. An older copy lacks one of them. See
docs/decisions/0053.
"""

import logging
import threading
from collections.abc import Callable
from typing import Final

from sqlalchemy import CursorResult, func, update
from sqlmodel import Session, col, select

from order_service.adapters.tables import AdoptionRow, DatabaseIdentityRow, EpochRow, TransactionRow
from order_service.domain.history import Witness
from rocketmq_broker.world import World
from service_runtime.database.database_errors import DatabaseUnavailable
from service_runtime.database.sessions import Sessions
from service_runtime.database.taking_locks import is_taken

MAX_AGE_MS: Final = 1_000
"""The greatest age of an epoch's number in a half message. No order writes it more often."""
_TURN_TIMEOUT_S: Final = 5.0
_MAX_ASKED: Final = 100_000
"""The most orders of other processes that are remembered from one check-back to the next. One more makes all forgotten."""

logger = logging.getLogger(__name__)


class OrderHistory:
    """A process's knowledge of its database's history; safe to use from several threads."""

    def __init__(self, sessions: Sessions, world: World) -> None:
        """`sessions` are with the order database."""
        self._sessions = sessions
        self._now_ms, self._new_uuid = world.wall_ms, world.new_uuid
        self._turn = threading.Lock()
        self._acquire = world.acquire
        self._epoch: Witness | None = None
        self._renewed_when_ms = 0
        self._committed = ""
        self._missing: Witness | None = None
        self._asked: set[str] = set()

    def note_local_commit(self, transaction_id: str) -> None:
        """Notes a transaction whose local commit is done: later half messages name it."""
        self._committed = transaction_id

    def witness(self) -> Witness:
        """Returns the database's present witness. Raises a DatabaseFailure. At most one order a second asks the database."""
        epoch = self._epoch
        if epoch is None or not self._is_fresh():
            epoch = self._renewed(epoch)
        return Witness(epoch.database_id, epoch.epoch_id, epoch.renewed_at_ms, self._committed)

    def reason_to_doubt(self, session: Session, witness: Witness | None) -> str | None:
        """Returns why a missing row does not prove that nothing was done; None if it does.

        A database that lacks the witness of one half message is the wrong one for all others too: until it holds that, or its
        history is adopted, it decides only half messages that this process sent. A half message without a witness comes from an
        older version, and is decided unless there is another doubt.
        """
        if witness is not None:
            if self._lacks(session, witness):
                self._missing = witness
            elif self._epoch is not None and witness.epoch_id == self._epoch.epoch_id:
                return None
        return self._standing_doubt(session)

    def was_asked_before(self, transaction_id: str, witness: Witness | None) -> bool:
        """Returns whether this process sent the half message, or has been asked about the transaction before; remembers it.

        Between two check-backs the broker asks about every other pending transaction, so that a doubt has come to light. A copy
        lacks nothing that an unpaid order's own half message names, though the order may have been paid since.
        """
        is_own = witness is None or (self._epoch is not None and witness.epoch_id == self._epoch.epoch_id)
        if is_own or transaction_id in self._asked:
            self._asked.discard(transaction_id)
            return True
        if len(self._asked) >= _MAX_ASKED:
            self._asked.clear()
        self._asked.add(transaction_id)
        return False

    def doubt(self) -> str | None:
        """Returns the standing reason to doubt, or None. Raises nothing."""
        missing = self._missing
        if missing is None:
            return None
        try:
            with self._sessions.reading() as session:
                return self._standing_doubt(session)
        except DatabaseUnavailable:
            return f"the order database lacked what half messages of database {missing.database_id} name, and does not answer now"

    def compare(self, newest: Callable[[], list[Witness]]) -> None:
        """Begins to doubt if the database lacks one of the newest witnesses of its own id. Raises nothing.

        A database that never took an order asks for none of them, and those of another database are left to check-backs.
        """
        try:
            with self._sessions.reading() as session:
                if session.exec(select(EpochRow.epoch_id).limit(1)).first() is None:
                    return
                own = session.exec(select(DatabaseIdentityRow.database_id)).one()
            witnesses = [witness for witness in newest() if witness.database_id == own]
            with self._sessions.reading() as session:
                missing = next((witness for witness in witnesses if self._lacks(session, witness)), None)
        except DatabaseUnavailable as error:
            logger.warning("the history of the order database is not compared with the newest messages: %s", error)
            return
        if missing is not None:
            self._missing = missing
            logger.error(
                "the order database is an old copy: it lacks what a message at the broker names, written at %s; "
                "no order is taken until the right database is there or a person says adopt-history",
                missing.renewed_at_ms,
            )

    def adopt(self, reason: str) -> int:
        """Makes this history count for all half messages until now, whatever their witness. Returns the time in milliseconds."""
        now_ms = self._now_ms()
        with self._sessions.writing() as session:
            session.add(AdoptionRow(adopted_at_ms=now_ms, reason=reason))
        return now_ms

    def _is_fresh(self) -> bool:
        return 0 <= self._now_ms() - self._renewed_when_ms < MAX_AGE_MS

    def _renewed(self, known: Witness | None) -> Witness:
        """Returns the epoch with a new number; with the known one while another thread renews it."""
        has_turn = is_taken(self._turn, _TURN_TIMEOUT_S, self._acquire) if known is None else self._turn.acquire(blocking=False)
        if not has_turn:
            if known is None:
                raise DatabaseUnavailable("the order database does not take the first row of this process")
            return known
        try:
            epoch = self._epoch
            if epoch is None or not self._is_fresh():
                epoch = self._epoch = self._written(epoch)
            return epoch
        finally:
            self._turn.release()

    def _written(self, known: Witness | None) -> Witness:
        now_ms = self._now_ms()
        number = now_ms if known is None else max(now_ms, known.renewed_at_ms + 1)
        with self._sessions.writing() as session:
            is_there = known is not None and _renew(session, known, number)
            if known is None or not is_there:
                database_id = session.exec(select(DatabaseIdentityRow.database_id)).one()
                epoch = Witness(database_id, self._new_uuid().hex, number)
                session.add(EpochRow(epoch_id=epoch.epoch_id, started_at_ms=now_ms, renewed_at_ms=number))
            else:
                epoch = Witness(known.database_id, known.epoch_id, number)
        if known is not None and not is_there:
            # Another database, or an older copy, has replaced the one of this process.
            self._committed, self._missing = "", known
            logger.error(
                "the order database has been replaced: it lacks what this process wrote into it at %s", known.renewed_at_ms
            )
        self._renewed_when_ms = now_ms
        return epoch

    def _standing_doubt(self, session: Session) -> str | None:
        missing = self._missing
        if missing is None:
            return None
        if not self._lacks(session, missing):
            self._missing = None
            return None
        own = session.exec(select(DatabaseIdentityRow.database_id)).first()
        if missing.database_id != own:
            return f"half messages name the order database {missing.database_id}, and this one is {own}"
        return (
            f"this order database, {own}, lacks what a sender had written into it before it sent its half message: "
            "it is an old copy, or one of two copies that both took orders"
        )

    def _lacks(self, session: Session, witness: Witness) -> bool:
        number = session.exec(select(EpochRow.renewed_at_ms).where(col(EpochRow.epoch_id) == witness.epoch_id)).first()
        if number is not None and number >= witness.renewed_at_ms and _has(session, witness.transaction_id):
            return False
        adopted_at_ms = session.exec(select(func.max(AdoptionRow.adopted_at_ms))).one()
        return adopted_at_ms is None or witness.renewed_at_ms > adopted_at_ms


def _renew(session: Session, known: Witness, number: int) -> bool:
    """Writes the number if the database has the epoch in a state as new as known. Returns whether it does."""
    is_it = col(EpochRow.epoch_id) == known.epoch_id, col(EpochRow.renewed_at_ms) >= known.renewed_at_ms
    done = session.execute(update(EpochRow).where(*is_it).values(renewed_at_ms=number))
    return isinstance(done, CursorResult) and done.rowcount > 0


def _has(session: Session, transaction_id: str) -> bool:
    if not transaction_id:
        return True
    query = select(TransactionRow.transaction_id).where(col(TransactionRow.transaction_id) == transaction_id)
    return session.exec(query).first() is not None
