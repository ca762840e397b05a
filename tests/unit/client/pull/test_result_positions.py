"""Tests that positions in the results database are saved before offsets are committed at the broker.

If a position is lower than before, the messages after it are delivered again.
"""

from collections.abc import Iterable, Mapping, Sequence

from rocketmq_broker.client import Setback
from rocketmq_broker.client.pull.result_positions import ResultOffsetStore
from rocketmq_broker.message import MessageQueue
from tests.unit.client.messages import QUEUE

OTHER = MessageQueue("orders", "broker-a", 1)


class AtBrokers:
    """The brokers' offsets."""

    def __init__(self, committed: Mapping[MessageQueue, int]) -> None:
        self.committed = dict(committed)
        self._offsets: dict[MessageQueue, int] = {}

    def update(self, queue: MessageQueue, offset: int) -> None:
        self._offsets[queue] = offset

    def forget(self, queue: MessageQueue) -> None:
        self._offsets.pop(queue, None)

    async def read(self, queue: MessageQueue) -> int | None:
        return self.committed.get(queue)

    async def persist(self, queues: Iterable[MessageQueue], *, confirmed: bool = False) -> None:
        self.committed |= {queue: self._offsets[queue] for queue in queues}


class Requests:
    """A broker whose queues have messages 0 to 99, of which the first `expired` are deleted."""

    def __init__(self, expired: int = 0, end: int = 100) -> None:
        self.expired = expired
        self.end = end

    async def min_offset(self, queue: MessageQueue) -> int:
        return self.expired

    async def max_offset(self, queue: MessageQueue) -> int:
        return self.end

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        return timestamp_ms // 1000


class Database:
    """A database with positions, which may become unreachable or be restored to an older state."""

    def __init__(self, positions: Mapping[MessageQueue, int], known_until_ms: int | None = None) -> None:
        self.positions = dict(positions)
        self.is_up = True
        self.lacks: Mapping[MessageQueue, int | None] = {}
        self.until_ms = known_until_ms
        self.setbacks: list[Setback] = []
        self.began_again: list[MessageQueue] = []

    def read(self, queue: MessageQueue) -> int | None:
        return self.positions.get(queue)

    def save(self, offsets: Mapping[MessageQueue, int]) -> Mapping[MessageQueue, int | None]:
        if not self.is_up:
            raise ConnectionError("the database is unreachable")
        if not self.lacks:
            self.positions |= offsets
        return self.lacks

    def known_until_ms(self) -> int | None:
        return self.until_ms

    def forget(self, queue: MessageQueue) -> None: ...

    def forget_results(self) -> None: ...

    def begin_again(self, queue: MessageQueue) -> None:
        self.began_again.append(queue)

    def went_back(self, setbacks: Sequence[Setback]) -> None:
        self.setbacks += setbacks
        self.lacks = {}


class Consumer:
    """A consumer's offset store, with a record of the queues that the store has restarted."""

    def __init__(self, database: Database, committed: Mapping[MessageQueue, int], requests: Requests | None = None) -> None:
        self.at_brokers, self.moves = AtBrokers(committed), list[tuple[MessageQueue, int]]()
        requests = requests or Requests()
        self.store = ResultOffsetStore(self.at_brokers, database, requests, lambda *to: self.moves.append(to))  # type: ignore[arg-type]


async def test_a_position_is_in_the_database_before_the_broker_has_the_offset() -> None:
    database = Database({})
    consumer = Consumer(database, {})
    consumer.store.update(QUEUE, 5)
    database.is_up = False
    await consumer.store.persist([QUEUE])
    assert (database.positions, consumer.at_brokers.committed) == ({}, {})
    database.is_up = True
    await consumer.store.persist([QUEUE])
    assert (database.positions, consumer.at_brokers.committed) == ({QUEUE: 5}, {QUEUE: 5})


async def test_a_group_goes_on_where_the_brokers_offset_is_if_the_database_has_all_before_it() -> None:
    database = Database({QUEUE: 9})
    assert await Consumer(database, {QUEUE: 9}).store.read(QUEUE) == 9
    assert await Consumer(database, {QUEUE: 7}).store.read(QUEUE) == 7
    assert await Consumer(database, {}).store.read(QUEUE) is None
    assert (database.setbacks, database.began_again) == ([], [])


async def test_a_database_that_went_back_while_nobody_consumed_is_known_by_the_brokers_offset() -> None:
    database = Database({QUEUE: 21})
    assert await Consumer(database, {QUEUE: 100}).store.read(QUEUE) == 21
    assert database.setbacks == [Setback(QUEUE, position=21, consumed=100, expired=0, is_new_database=False)]


async def test_messages_that_the_broker_no_longer_has_are_counted() -> None:
    database = Database({QUEUE: 21})
    await Consumer(database, {QUEUE: 100}, Requests(expired=50)).store.read(QUEUE)
    assert [setback.expired for setback in database.setbacks] == [29]


async def test_a_database_without_any_result_gets_all_that_the_broker_has() -> None:
    database = Database({})
    assert await Consumer(database, {QUEUE: 100}, Requests(expired=10)).store.read(QUEUE) == 10
    assert database.setbacks == [Setback(QUEUE, position=10, consumed=100, expired=0, is_new_database=True)]


async def test_a_database_with_results_and_no_position_gets_its_latest_messages_again_and_nobody_is_alarmed() -> None:
    database = Database({}, known_until_ms=60_000)
    assert await Consumer(database, {QUEUE: 100}).store.read(QUEUE) == 60
    assert await Consumer(database, {QUEUE: 40}).store.read(QUEUE) == 40
    assert database.setbacks == []


async def test_a_database_that_goes_back_at_work_moves_its_queues_and_the_brokers_offsets_back() -> None:
    database = Database({})
    consumer = Consumer(database, {})
    for queue in (QUEUE, OTHER):
        consumer.store.update(queue, 100)
    await consumer.store.persist([QUEUE, OTHER])
    database.lacks = {QUEUE: 21, OTHER: 100}
    await consumer.store.persist([QUEUE, OTHER])
    assert consumer.moves == [(QUEUE, 21)]
    assert consumer.at_brokers.committed == {QUEUE: 21, OTHER: 100}
    assert database.setbacks == [Setback(QUEUE, position=21, consumed=100, expired=0, is_new_database=False)]


async def test_a_position_behind_the_end_of_its_queue_is_one_of_another_queue() -> None:
    database = Database({QUEUE: 500})
    assert await Consumer(database, {QUEUE: 40}).store.read(QUEUE) == 40
    assert database.began_again == [QUEUE]
    assert database.setbacks == []
