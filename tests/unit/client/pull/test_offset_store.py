"""Tests the broker's offsets, and the offsets in the file of a broadcasting consumer."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from rocketmq_broker.client import BrokerUnreachable
from rocketmq_broker.client.pull.offset_store import BrokerOffsetStore, LocalFileOffsetStore
from rocketmq_broker.message import MessageQueue
from rocketmq_broker.testing.virtual_time import VirtualTime
from tests.passing_time import in_virtual_time
from tests.unit.client.messages import QUEUE

OTHER = MessageQueue("orders", "broker-a", 1)


class Requests:
    def __init__(self, committed: int | None = None) -> None:
        self.committed = committed
        self.is_up = True
        self.heard: list[tuple[MessageQueue, int]] = []

    async def committed_offset(self, group: str, queue: MessageQueue) -> int | None:
        if not self.is_up:
            raise BrokerUnreachable("the broker is down")
        return self.committed

    async def commit_offset_oneway(self, group: str, queue: MessageQueue, offset: int) -> None:
        if not self.is_up:
            raise BrokerUnreachable("the broker is down")
        self.heard.append((queue, offset))

    async def commit_offsets(self, group: str, offsets: Mapping[MessageQueue, int]) -> None:
        for queue, offset in offsets.items():
            await self.commit_offset_oneway(group, queue, offset)


def store_on(requests: Requests) -> BrokerOffsetStore:
    return BrokerOffsetStore("group", requests)  # type: ignore[arg-type]


@pytest.mark.parametrize("confirmed", [False, True])
async def test_only_the_queues_asked_for_are_sent_to_the_broker(confirmed: bool) -> None:
    requests = Requests()
    store = store_on(requests)
    store.update(QUEUE, 5)
    store.update(OTHER, 9)
    await store.persist([QUEUE, MessageQueue("orders", "broker-a", 7)], confirmed=confirmed)
    assert requests.heard == [(QUEUE, 5)]


@pytest.mark.parametrize("confirmed", [False, True])
async def test_a_broker_that_is_away_hears_the_offset_at_the_next_turn(confirmed: bool) -> None:
    requests = Requests()
    store = store_on(requests)
    store.update(QUEUE, 5)
    requests.is_up = False
    await store.persist([QUEUE], confirmed=confirmed)
    requests.is_up = True
    await store.persist([QUEUE], confirmed=confirmed)
    assert requests.heard == [(QUEUE, 5)]


async def test_a_member_without_progress_that_leaves_late_does_not_take_back_the_progress_of_the_next_owner() -> None:
    requests = Requests()
    leaving, next_owner = store_on(requests), store_on(requests)
    for store, offset in ((leaving, 0), (next_owner, 5), (leaving, 0)):
        store.update(QUEUE, offset)
        await store.persist([QUEUE], confirmed=True)
        await store.persist([QUEUE])
    assert requests.heard == [(QUEUE, 0), (QUEUE, 5)]


async def test_of_an_offset_that_was_read_only_a_change_is_sent() -> None:
    requests = Requests(committed=5)
    store = store_on(requests)
    assert await store.read(QUEUE) == 5
    for offset in (5, 6, 6, 5):
        store.update(QUEUE, offset)
        await store.persist([QUEUE], confirmed=True)
    assert requests.heard == [(QUEUE, 6), (QUEUE, 5)]


@pytest.mark.parametrize("confirmed", [False, True])
async def test_after_an_offset_without_an_answer_the_one_before_it_counts_as_unknown(confirmed: bool) -> None:
    requests = Requests(committed=5)
    store = store_on(requests)
    await store.read(QUEUE)
    requests.is_up = False
    store.update(QUEUE, 6)
    await store.persist([QUEUE], confirmed=confirmed)
    requests.is_up = True
    store.update(QUEUE, 5)
    await store.persist([QUEUE], confirmed=True)
    assert requests.heard == [(QUEUE, 5)]


async def test_an_error_is_never_taken_for_no_offset() -> None:
    requests = Requests()
    requests.is_up = False
    with pytest.raises(BrokerUnreachable):
        await store_on(requests).read(QUEUE)


@pytest.mark.parametrize(("kept", "read"), [(None, None), (-1, None), (0, 0), (7, 7)])
async def test_a_negative_offset_means_none(kept: int | None, read: int | None) -> None:
    assert await store_on(Requests(kept)).read(QUEUE) == read


async def test_the_file_keeps_offsets_for_the_next_start(tmp_path: Path) -> None:
    store = LocalFileOffsetStore(tmp_path / "group")
    store.update(QUEUE, 5)
    await store.persist([QUEUE])
    assert await LocalFileOffsetStore(tmp_path / "group").read(QUEUE) == 5


async def test_the_file_may_hold_as_many_queues_as_topics_have(tmp_path: Path) -> None:
    store = LocalFileOffsetStore(tmp_path)
    queues = [MessageQueue("orders", "broker-a", queue_id) for queue_id in range(20_000)]
    for queue in queues:
        store.update(queue, 1_000_000)
    await store.persist(queues)
    assert (tmp_path / "offsets.json").stat().st_size > 1 << 20
    assert await LocalFileOffsetStore(tmp_path).read(queues[-1]) == 1_000_000


async def test_a_file_written_by_apaches_client_is_read(tmp_path: Path) -> None:
    written = '{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"orders"}:12}}'
    (tmp_path / "offsets.json").write_text(written)
    assert await LocalFileOffsetStore(tmp_path).read(QUEUE) == 12


@pytest.mark.parametrize("damage", ['{"offsetTable":{{"brok', '{"offsetTable":[]}', '{"offsetTable":null}'])
async def test_a_damaged_file_is_passed_over_for_the_one_before_it(tmp_path: Path, damage: str) -> None:
    store = LocalFileOffsetStore(tmp_path)
    for offset in (5, 6):
        store.update(QUEUE, offset)
        await store.persist([QUEUE])
    (tmp_path / "offsets.json").write_text(damage)
    assert await LocalFileOffsetStore(tmp_path).read(QUEUE) == 5


def test_an_offset_that_does_not_change_is_sent_again_after_half_a_minute_only() -> None:
    requests = Requests()

    async def work(virtual: VirtualTime) -> list[int]:
        store, heard = store_on(requests), []
        for offset, passed_s in ((5, 0), (5, 5), (6, 5), (6, 29), (6, 1)):
            await virtual.advance(passed_s)
            store.update(QUEUE, offset)
            await store.persist([QUEUE])
            heard.append(len(requests.heard))
        return heard

    assert in_virtual_time(work) == [1, 1, 2, 2, 3]
