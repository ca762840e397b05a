"""Stores a consumer group's positions in the database of its results. Detects a reset of the database to an older state.

The position of a queue is an offset: the database contains the results of all messages before it. Positions are saved once a
second, and a database may be copied in between. Each save therefore also checks that the database contains all results that
the listener's threads have acknowledged since the save before. The latest ones do not suffice: they may have been stored after
the database went back. A standby or a backup has the commits of its primary in the same order: if it contains the results of
one save, it contains those of earlier saves.

A queue may have no position, because the tables are newer than the queue. `positions_origin` stores the time until which the
results were complete when the tables were created, or no time for an empty database.
"""

import logging
import threading
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import asdict
from typing import Final, Generic, NamedTuple, Self, TypeVar

from prometheus_client import CollectorRegistry, Counter
from sqlalchemy import BigInteger, Column, Integer, MetaData, String, Table, and_, delete, select
from sqlmodel import Session

from rocketmq_broker.client import MessageQueue, Setback
from service_runtime.database.database_errors import DatabaseUnavailable
from service_runtime.database.sessions import Sessions

K = TypeVar("K", bound=Hashable)
_RESULTS_AT_ONCE: Final = 500
_MAX_RESULTS: Final = 100_000
"""The maximum number of results that are remembered while positions cannot be saved. The oldest ones are forgotten first."""

logger = logging.getLogger(__name__)


class PositionTables(NamedTuple):
    """The tables that store positions. A migration of each service creates them."""

    positions: Table
    origin: Table

    @classmethod
    def of(cls, metadata: MetaData) -> Self:
        """Adds the tables to a service's metadata, and returns them."""
        return cls(
            Table(
                "consumed_positions",
                metadata,
                Column("topic", String(255), primary_key=True),
                Column("broker_name", String(255), primary_key=True),
                Column("queue_id", Integer, primary_key=True, autoincrement=False),
                Column("next_offset", BigInteger, nullable=False),
            ),
            Table(
                "positions_origin",
                metadata,
                Column("id", Integer, primary_key=True, autoincrement=False),
                Column("known_until_ms", BigInteger, nullable=True),
            ),
        )


class Positions(Generic[K]):
    """Implements `rocketmq_broker.client.ResultPositions` with the service's database. `K` is the key of a result."""

    def __init__(
        self,
        sessions: Sessions,
        tables: PositionTables,
        *,
        has_all: Callable[[Session, Collection[K]], bool],
        service: str,
        to_do: str,
        metrics: CollectorRegistry | None = None,
    ) -> None:
        """`has_all` returns True if the database contains these results. It gets at most 500 results at a time.

        `service` is the first word of the service's name. `to_do` is the advice after a reset, without a full stop.
        """
        self._sessions = sessions
        self._table, self._origin = tables
        self._has_all = has_all
        self._saved: dict[MessageQueue, int] = {}
        self._beginning_again: set[MessageQueue] = set()
        self._is_doubted = False
        self._turn = threading.Lock()
        self._unsaved: list[K] = []
        """The results that were acknowledged since the last save, in this order."""
        self._found: list[K] = []
        """The newest results that the last save with any has found. They may be newer than all positions."""
        self._database = f"the {service} database"
        self._to_do = to_do
        self._setbacks: dict[MessageQueue, Setback] = {}
        text = "Messages that were redelivered because the database was reset to an older state."
        self._lacked = Counter(f"{service}_messages_lacked", text, registry=metrics)

    def acknowledging(self, results: Collection[K]) -> None:
        """Records results that are durable, before the calling thread acknowledges their messages."""
        with self._turn:
            self._unsaved += results
            del self._unsaved[:-_MAX_RESULTS]

    def forget(self, queue: MessageQueue) -> None:
        """Forgets the saved position of a queue."""
        self._saved.pop(queue, None)

    def forget_results(self) -> None:
        """Forgets the acknowledged results, because the database lacks them. It must contain results acknowledged later."""
        with self._turn:
            self._unsaved, self._found = [], []
        self._is_doubted = True

    def begin_again(self, queue: MessageQueue) -> None:
        """Allows the next `save` to lower the queue's position, because the broker's queue starts at a lower offset."""
        self._beginning_again.add(queue)

    def read(self, queue: MessageQueue) -> int | None:
        """Returns the queue's position, or None if it has none. Raises DatabaseUnavailable."""
        with self._sessions.reading() as session:
            return self._stored(session).get(queue)

    def known_until_ms(self) -> int | None:
        """Returns the time until which the results were complete when the tables were created; None without results.

        Raises DatabaseUnavailable.
        """
        with self._sessions.reading() as session:
            return session.connection().scalar(select(self._origin.c.known_until_ms))

    def save(self, offsets: Mapping[MessageQueue, int]) -> dict[MessageQueue, int | None]:
        """Saves positions durably. Returns an empty mapping on success.

        If the database lacks positions or results that it had before, saves nothing and returns the positions in the database.
        The messages before `offsets` must have been acknowledged before this call. Raises DatabaseFailure.
        """
        unsaved, results = self._unchecked()
        is_new = any(self._saved.get(queue) != offset for queue, offset in offsets.items())
        with self._sessions.writing() if is_new else self._sessions.reading() as session:
            stored = self._stored(session)
            has_positions = all(stored.get(queue, -1) >= self._saved.get(queue, -1) for queue in offsets)
            if not has_positions or not self._has_results(session, results):
                self._require_one_database(has_positions=has_positions)
                return {queue: stored.get(queue) for queue in offsets}
            # A position only increases, unless its queue starts again.
            low = {queue: 0 if queue in self._beginning_again else stored.get(queue, 0) for queue in offsets}
            wanted = {queue: max(offset, low[queue]) for queue, offset in offsets.items()}
            self._write(session, {queue: offset for queue, offset in wanted.items() if stored.get(queue) != offset})
        self._beginning_again -= wanted.keys()
        self._saved |= wanted
        if unsaved:
            self._found = unsaved[-_RESULTS_AT_ONCE:]
            with self._turn:
                del self._unsaved[: len(unsaved)]
            self._is_doubted = False
        return {}

    def went_back(self, setbacks: Sequence[Setback]) -> None:
        """Logs and counts the messages that are redelivered after a reset, and stores the setbacks for `attention`."""
        for setback in setbacks:
            logger.error(
                "%s was reset to an older state: it lacks %d messages of %s, redelivered from offset %d; %d of them have expired",
                self._database, setback.consumed - setback.position, setback.queue, setback.position, setback.expired,
            )  # fmt: skip
            self._setbacks[setback.queue] = setback
            self._lacked.inc(setback.consumed - setback.position)

    def attention(self) -> list[str]:
        """Returns a warning for operators if the database was reset to an older state, or an empty list otherwise.

        The warning remains until the service restarts.
        """
        setbacks = list(self._setbacks.values())
        if not setbacks:
            return []
        lacked = sum(setback.consumed - setback.position for setback in setbacks)
        expired = sum(setback.expired for setback in setbacks)
        is_new = all(setback.is_new_database for setback in setbacks)
        what = "has no results at all, and" if is_new else "was reset to an older state:"
        again = f"{lacked - expired} are redelivered"
        lost = f", and {expired} have expired at the broker; run `reconcile` to find their orders" if expired else ""
        return [
            f"{self._database} {what} it lacked {lacked} messages of {len(setbacks)} queues; {again}{lost}. {self._to_do}."
            " This line disappears when the service restarts. See docs/services.md, A database that goes back"
        ]

    def _unchecked(self) -> tuple[list[K], list[K]]:
        """Returns the results since the last save, and all that the next save must find."""
        with self._turn:
            return list(self._unsaved), list(dict.fromkeys([*self._unsaved, *self._found]))

    def _has_results(self, session: Session, results: Sequence[K]) -> bool:
        parts = (results[begin : begin + _RESULTS_AT_ONCE] for begin in range(0, len(results), _RESULTS_AT_ONCE))
        return all(self._has_all(session, part) for part in parts)

    def _require_one_database(self, *, has_positions: bool) -> None:
        """Raises DatabaseUnavailable if results are missing a second time.

        The probable cause is that the workers use another database.
        """
        if self._is_doubted and has_positions:
            self.forget_results()
            raise DatabaseUnavailable(
                "the database lacks results that were just acknowledged; check that the workers use the same database"
            )

    def _stored(self, session: Session) -> dict[MessageQueue, int]:
        rows = session.connection().execute(select(self._table))
        return {MessageQueue(row.topic, row.broker_name, row.queue_id): row.next_offset for row in rows}

    def _write(self, session: Session, positions: Mapping[MessageQueue, int]) -> None:
        table = self._table.c
        for queue, offset in sorted(positions.items()):
            is_it = and_(*(table[name] == value for name, value in asdict(queue).items()))
            session.connection().execute(delete(self._table).where(is_it))
            session.connection().execute(self._table.insert().values(**asdict(queue), next_offset=offset))
