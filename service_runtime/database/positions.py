"""Stores the positions of a consumer group in the database of its results, for `rocketmq_broker.client.ResultPositions`.

The position of a queue is an offset: the database contains the results of all messages before it. Positions are saved once a
second, and a database may be copied in between. So the database must also contain the latest results that the listener's threads
have acknowledged. A standby or a backup has the commits of its primary in the same order: if it contains the latest result of
each thread, it contains all earlier ones.

A queue may have no position, because the tables are newer than the queue. `positions_origin` has the time until which the results
were complete when the tables were created; none for an empty database.
"""

import threading
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Final, Generic, NamedTuple, Self, TypeVar

from sqlalchemy import BigInteger, Column, Integer, MetaData, String, Table, and_, delete, select
from sqlmodel import Session

from service_runtime.database.database_errors import DatabaseUnavailable
from service_runtime.database.sessions import Sessions

K = TypeVar("K", bound=Hashable)
_RESULTS_AT_ONCE: Final = 500


class QueueName(NamedTuple):
    """The topic, broker and id of a queue."""

    topic: str
    broker_name: str
    queue_id: int


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
    """The positions in a database, and the ones that this process saved last. `K` is the key of a result."""

    def __init__(
        self,
        sessions: Sessions,
        tables: PositionTables,
        *,
        has_all: Callable[[Session, Collection[K]], bool],
    ) -> None:
        """`has_all` returns True if the database contains these results, of which it gets at most 500 at a time."""
        self._sessions = sessions
        self._table, self._origin = tables
        self._has_all = has_all
        self._saved: dict[QueueName, int] = {}
        self._beginning_again: set[QueueName] = set()
        self._is_doubted = False
        self._latest: dict[int, frozenset[K]] = {}
        """The latest results of each thread of the listener."""

    def acknowledging(self, results: Collection[K]) -> None:
        """Records results that are durable, before the calling thread acknowledges their messages."""
        if results:
            self._latest[threading.get_ident()] = frozenset(results)

    def forget(self, queue: QueueName) -> None:
        """Forgets the saved position of a queue."""
        self._saved.pop(queue, None)

    def forget_results(self) -> None:
        """Forgets the acknowledged results, which the database lacks. Results that are acknowledged later must exist in it."""
        self._latest.clear()
        self._is_doubted = True

    def begin_again(self, queue: QueueName) -> None:
        """Allows the next `save` to lower the queue's position, because the broker's queue starts at a lower offset again."""
        self._beginning_again.add(queue)

    def read(self, queue: QueueName) -> int | None:
        """Returns the queue's position, or None if it has none. Raises DatabaseUnavailable."""
        with self._sessions.reading() as session:
            return self._stored(session).get(queue)

    def known_until_ms(self) -> int | None:
        """Returns the time until which the results were complete when the tables were created; None without results.

        Raises DatabaseUnavailable.
        """
        with self._sessions.reading() as session:
            return session.connection().scalar(select(self._origin.c.known_until_ms))

    def save(self, offsets: Mapping[QueueName, int]) -> dict[QueueName, int | None]:
        """Saves positions, which are durable on return. Returns an empty mapping on success.

        If the database lacks positions or results that it had before, saves nothing and returns the positions that it has. The
        messages before `offsets` must have been acknowledged before this call. Raises DatabaseFailure.
        """
        latest: frozenset[K] = frozenset().union(*list(self._latest.values()))
        is_new = any(self._saved.get(queue) != offset for queue, offset in offsets.items())
        with self._sessions.writing() if is_new else self._sessions.reading() as session:
            stored = self._stored(session)
            has_positions = all(stored.get(queue, -1) >= self._saved.get(queue, -1) for queue in offsets)
            if not has_positions or not self._has_results(session, list(latest)):
                self._require_one_database(has_positions=has_positions)
                return {queue: stored.get(queue) for queue in offsets}
            # A position only increases, unless its queue starts again.
            low = {queue: 0 if queue in self._beginning_again else stored.get(queue, 0) for queue in offsets}
            wanted = {queue: max(offset, low[queue]) for queue, offset in offsets.items()}
            self._write(session, {queue: offset for queue, offset in wanted.items() if stored.get(queue) != offset})
        self._beginning_again -= wanted.keys()
        self._saved |= wanted
        self._is_doubted = self._is_doubted and not latest
        return {}

    def _has_results(self, session: Session, results: Sequence[K]) -> bool:
        parts = (results[begin : begin + _RESULTS_AT_ONCE] for begin in range(0, len(results), _RESULTS_AT_ONCE))
        return all(self._has_all(session, part) for part in parts)

    def _require_one_database(self, *, has_positions: bool) -> None:
        """Raises DatabaseUnavailable if results are missing for the second time. The workers probably use another database."""
        if self._is_doubted and has_positions:
            self.forget_results()
            raise DatabaseUnavailable(
                "the database lacks results that were just acknowledged; check that the workers use the same database"
            )

    def _stored(self, session: Session) -> dict[QueueName, int]:
        rows = session.connection().execute(select(self._table))
        return {QueueName(row.topic, row.broker_name, row.queue_id): row.next_offset for row in rows}

    def _write(self, session: Session, positions: Mapping[QueueName, int]) -> None:
        table = self._table.c
        for queue, offset in sorted(positions.items()):
            is_it = and_(*(table[name] == value for name, value in queue._asdict().items()))
            session.connection().execute(delete(self._table).where(is_it))
            session.connection().execute(self._table.insert().values(**queue._asdict(), next_offset=offset))
