import errno
from pathlib import Path

import pytest

from rocketmq_broker.message import sysflag
from rocketmq_broker.message.record import decode_record
from rocketmq_broker.message.tags import tags_code
from rocketmq_broker.store import (
    ROUNDS,
    CorruptRecord,
    GetMessageStatus,
    IllegalMessage,
    MessageStore,
    RecordLost,
    RecordNotFound,
    StoreConfig,
    StoreLocked,
    StoreUnwritable,
    Unsynced,
)
from tests.unit.store.conftest import HOST, NOW, append, bodies, delete_expired, delete_topic, offsets, send, small_config
from tests.unit.store.crash_disk import Crash, CrashDisk


def test_a_message_is_visible_once_it_is_published_and_not_before(store: MessageStore) -> None:
    appended = append(store, b"hello")
    position = store.write()
    assert store.pull(b"orders", 0, 0, 32, 1 << 20).status is GetMessageStatus.NO_MESSAGE_IN_QUEUE
    assert store.max_offset(b"orders", 0) == 0
    store.publish(position)
    pulled = store.pull(b"orders", 0, 0, 32, 1 << 20)
    assert pulled.status is GetMessageStatus.FOUND
    assert [decode_record(record).body for record in pulled.records] == [b"hello"]
    assert (pulled.next_begin_offset, pulled.min_offset, pulled.max_offset) == (1, 0, 1)
    assert position == appended.end_position


def test_publishing_a_position_shows_only_what_ends_before_it(store: MessageStore) -> None:
    first, _ = append(store, b"1"), append(store, b"2")
    store.write()
    store.publish(first.end_position)
    assert bodies(store) == [b"1"]
    store.publish(store.written_position)
    assert bodies(store) == [b"1", b"2"]


def test_the_record_holds_what_was_appended_and_where_it_is(store: MessageStore) -> None:
    send(store, b"before")
    (appended,) = send(
        store,
        b"x",
        topic=b"t",
        queue_id=3,
        properties=b"KEYS\x01k",
        flag=7,
        sys_flag=8,
        reconsume_times=2,
        prepared_transaction_offset=99,
    )
    record = decode_record(store.read(appended.commit_log_offset))
    assert record.is_intact
    assert (record.topic, record.queue_id, record.queue_offset, record.commit_log_offset) == (
        b"t",
        3,
        0,
        appended.commit_log_offset,
    )
    assert (record.flag, record.sys_flag, record.reconsume_times, record.prepared_transaction_offset) == (7, 8, 2, 99)
    assert (record.properties, record.born_host, record.store_host) == (b"KEYS\x01k", HOST, HOST)


def test_each_queue_counts_its_own_offsets(store: MessageStore) -> None:
    offsets = [send(store, b"x", topic=topic, queue_id=queue_id)[0].queue_offset for topic, queue_id in
               ((b"a", 0), (b"a", 0), (b"a", 1), (b"b", 0), (b"a", 0))]  # fmt: skip
    assert offsets == [0, 1, 0, 0, 2]


def test_a_record_that_does_not_fit_closes_the_segment_with_a_blank_one(store: MessageStore, config: StoreConfig) -> None:
    send(store, b"a" * 400)
    (second,) = send(store, b"b" * 600)
    assert second.commit_log_offset == 1024
    first_file = (config.commit_log_directory / "00000000000000000000").read_bytes()
    assert len(first_file) == 1024
    end_of_first = 97 + 400
    assert first_file[end_of_first : end_of_first + 8] == (1024 - end_of_first).to_bytes(4, "big") + bytes.fromhex("cbd43194")
    assert bodies(store) == [b"a" * 400, b"b" * 600]


def test_a_record_leaves_at_least_8_bytes_for_the_blank_one(store: MessageStore) -> None:
    send(store, b"a" * (1024 - 97 - 8))
    assert store.written_position == 1016
    (following,) = send(store, b"b")
    assert following.commit_log_offset == 1024


def test_one_batch_may_span_several_segments(store: MessageStore) -> None:
    sent = [bytes([65 + number]) * 300 for number in range(12)]
    send(store, *sent)
    assert bodies(store) == sent
    assert store.segments_to_flush(0, store.written_position)[-1].name == f"{store.written_position // 1024 * 1024:020d}"


def test_prepared_and_rolled_back_records_enter_no_queue(store: MessageStore) -> None:
    appended = send(store, b"p", sys_flag=sysflag.TRANSACTION_PREPARED_TYPE) + send(
        store, b"r", sys_flag=sysflag.TRANSACTION_ROLLBACK_TYPE
    )
    send(store, b"c", sys_flag=sysflag.TRANSACTION_COMMIT_TYPE)
    assert bodies(store) == [b"c"]
    assert [decode_record(store.read(place.commit_log_offset)).queue_offset for place in appended] == [0, 0]


def test_a_pull_outside_the_queue_says_where_to_go_on(store: MessageStore) -> None:
    send(store, b"1", b"2")
    assert store.pull(b"orders", 0, 2, 32, 99999).status is GetMessageStatus.OFFSET_OVERFLOW_ONE
    badly = store.pull(b"orders", 0, 7, 32, 99999)
    assert (badly.status, badly.next_begin_offset) == (GetMessageStatus.OFFSET_OVERFLOW_BADLY, 2)
    small = store.pull(b"orders", 0, -1, 32, 99999)
    assert (small.status, small.next_begin_offset) == (GetMessageStatus.OFFSET_TOO_SMALL, 0)
    assert store.pull(b"orders", 1, 5, 32, 99999).next_begin_offset == 0


def test_a_pull_stops_at_either_limit_but_brings_at_least_one(store: MessageStore) -> None:
    send(store, *[b"x" * 100] * 5)
    assert len(store.pull(b"orders", 0, 0, 2, 1 << 20).records) == 2
    limited = store.pull(b"orders", 0, 0, 32, 450)
    assert (len(limited.records), limited.next_begin_offset) == (2, 2)
    assert len(store.pull(b"orders", 0, 0, 32, 1).records) == 1


def test_a_pull_with_tags_passes_over_other_messages(store: MessageStore) -> None:
    for number, tag in enumerate(b"ABABC"):
        send(store, b"%d" % number, properties=b"TAGS\x01%c" % tag)
    pulled = store.pull(b"orders", 0, 0, 32, 1 << 20, frozenset({tags_code("B")}))
    assert [decode_record(record).body for record in pulled.records] == [b"1", b"3"]
    assert pulled.next_begin_offset == 5
    none = store.pull(b"orders", 0, 0, 32, 1 << 20, frozenset({tags_code("Z")}))
    assert (none.status, none.next_begin_offset) == (GetMessageStatus.NO_MATCHED_MESSAGE, 5)


def test_a_delayed_message_is_queued_under_the_time_it_is_due(store: MessageStore) -> None:
    send(store, b"later", topic=b"SCHEDULE_TOPIC_XXXX", queue_id=2, properties=b"DELAY\x013\x02TAGS\x01A")
    queue = store._queues.find(b"SCHEDULE_TOPIC_XXXX", 2)
    assert queue is not None
    assert queue.units(0, 1)[0].tags_code == NOW + 10_000


def test_queues_longer_than_a_file_read_as_one(store: MessageStore) -> None:
    sent = [b"%d" % number for number in range(50)]
    for body in sent:
        send(store, body)
    store.flush()
    send(store, b"in memory")
    assert bodies(store, max_messages=5) == [*sent, b"in memory"]


def test_the_arrival_listener_hears_once_of_each_queue(store: MessageStore) -> None:
    heard: list[tuple[bytes, int, int, int]] = []
    store.arrival_listener = lambda *arrival: heard.append(arrival)
    ends = [append(store, queue_id=queue_id).end_position for queue_id in (0, 0, 1)]
    store.publish(store.write())
    assert heard == [(b"orders", 0, 2, ends[1]), (b"orders", 1, 1, ends[2] - ends[1])]


def test_a_time_leads_to_the_nearest_message(store: MessageStore) -> None:
    for seconds in (0, 10, 20):
        send(store, b"x", store_timestamp=NOW + seconds * 1000)
    at = [store.offset_by_time(b"orders", 0, NOW + seconds * 1000) for seconds in (-5, 0, 4, 6, 10, 16, 99)]
    assert at == [0, 0, 0, 1, 1, 2, 2]
    assert store.offset_by_time(b"orders", 9, NOW) == 0
    assert store.store_time(b"orders", 0, 1) == NOW + 10_000
    assert store.store_time(b"orders", 0, 3) == -1
    assert store.earliest_store_time() == NOW


def test_messages_are_found_by_any_of_their_keys(store: MessageStore) -> None:
    send(store, b"1", properties=b"KEYS\x01red blue\x02UNIQ_KEY\x01ID1")
    send(store, b"2", properties=b"KEYS\x01blue\x02UNIQ_KEY\x01ID2", store_timestamp=NOW + 5000)

    def found(key: str, begin_ms: int = 0, end_ms: int = NOW * 2) -> list[bytes]:
        return [decode_record(record).body for record in store.query(b"orders", key, 32, begin_ms, end_ms).records]

    for _ in ("in memory", "in the file"):
        assert (found("red"), found("blue"), found("ID2"), found("green")) == ([b"1"], [b"1", b"2"], [b"2"], [])
        assert found("blue", NOW + 4000) == [b"2"]
        assert found("blue", 0, NOW + 1000) == [b"1"]
        assert store.query(b"other", "red", 32, 0, NOW * 2).records == []
        store.flush()


def test_what_is_no_record_is_not_read(store: MessageStore) -> None:
    (appended,) = send(store, b"x" * 50)
    for offset in (-1, appended.commit_log_offset + 1):
        with pytest.raises(RecordLost):
            store.read(offset)


def test_a_record_that_is_not_written_yet_may_be_there_later(store: MessageStore) -> None:
    (appended,) = send(store, b"x" * 50)
    for offset in (appended.end_position, 5000):
        with pytest.raises(RecordNotFound):
            store.read(offset)
    send(store, b"y")
    assert decode_record(store.read(appended.end_position)).body == b"y"


def test_a_record_whose_beginning_was_overwritten_is_lost(store: MessageStore, config: StoreConfig) -> None:
    first, _ = send(store, b"first", b"second")
    path = config.commit_log_directory / "00000000000000000000"
    path.write_bytes(bytes(64) + path.read_bytes()[64:])
    with pytest.raises(RecordLost):
        store.read(first.commit_log_offset)


def test_a_record_with_a_wrong_checksum_is_never_served(store: MessageStore, config: StoreConfig) -> None:
    places = send(store, b"first", b"second", b"third")
    path = config.commit_log_directory / "00000000000000000000"
    content = path.read_bytes()
    path.write_bytes(content.replace(b"second", b"secomd"))
    with pytest.raises(CorruptRecord):
        store.read(places[1].commit_log_offset)
    assert bodies(store) == [b"first", b"third"]
    pulled = store.pull(b"orders", 0, 1, 1, 1)
    assert ([decode_record(record).body for record in pulled.records], pulled.next_begin_offset) == ([b"third"], 3)


@pytest.mark.parametrize("topic", [b"../up", b"a/b", b"..", b".", b"", b"a\0b", b"x" * 128, b"caf\xc3\xa9"])
def test_a_topic_that_is_no_plain_name_is_refused(store: MessageStore, topic: bytes) -> None:
    with pytest.raises(IllegalMessage):
        append(store, topic=topic)
    with pytest.raises(IllegalMessage):
        append(store, queue_id=-1)
    assert store.write() == 0


def test_what_is_too_large_is_refused_and_leaves_no_trace(store: MessageStore) -> None:
    with pytest.raises(IllegalMessage):
        append(store, b"x" * 2000)
    with pytest.raises(IllegalMessage):
        append(store, properties=b"x" * 32768)
    with pytest.raises(IllegalMessage):
        append(store, b"x" * (4 << 20) + b"x")
    assert offsets(send(store, b"fine")[0]) == (0, 0, 101)


def test_a_batch_that_cannot_be_written_leaves_no_trace() -> None:
    disk = CrashDisk()
    config = small_config(Path("/store"))
    store = MessageStore.open(config, disk)
    send(store, b"kept")
    disk.refuse_writes_after = 150
    append(store, b"lost 1"), append(store, b"lost 2"), append(store, b"lost", queue_id=5)
    with pytest.raises(StoreUnwritable, match="ENOSPC"):
        store.write()
    disk.refuse_writes_after = None
    assert (store.max_offset(b"orders", 0), store.next_offset(b"orders", 0), store.next_offset(b"orders", 5)) == (1, 1, 0)
    (after,) = send(store, b"x")
    assert after.queue_offset == 1
    image = disk.image(disk.operations, Crash.PROCESS_KILLED)
    assert bodies(MessageStore.open(config, image)) == [b"kept", b"x"]


def test_what_could_not_be_flushed_can_be_taken_back(store: MessageStore) -> None:
    send(store, b"kept")
    store.flush()
    append(store, b"lost", queue_id=0), append(store, b"lost too", queue_id=1)
    store.write()
    append(store, b"not even written")
    store.abandon_unflushed()
    assert store.written_position == store.flushed_position
    assert send(store, b"next")[0].queue_offset == 1
    assert (bodies(store), bodies(store, queue_id=1)) == ([b"kept", b"next"], [])


def test_what_is_on_disk_is_shown_though_what_came_after_it_was_taken_back(store: MessageStore) -> None:
    append(store, b"flushed")
    store.mark_flushed(store.write())
    append(store, b"lost")
    store.write()
    store.abandon_unflushed()
    store.publish(store.written_position)
    assert bodies(store) == [b"flushed"]
    assert send(store, b"next")[0].queue_offset == 1


def test_taking_back_a_record_that_enters_no_queue_changes_no_queue(store: MessageStore) -> None:
    send(store, b"1", b"2")
    store.flush()
    append(store, b"prepared", sys_flag=sysflag.TRANSACTION_PREPARED_TYPE)
    store.write()
    store.abandon_unflushed()
    assert store.next_offset(b"orders", 0) == 2
    assert send(store, b"3")[0].queue_offset == 2


def test_nothing_more_is_stored_where_the_disk_lets_nothing_be_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = CrashDisk()
    config = small_config(Path("/store"))
    store = MessageStore.open(config, disk)
    send(store, b"kept")
    store.flush()
    append(store, b"not flushed")
    store.write()

    def fail(file: int, length: int) -> None:
        raise OSError(errno.EIO, "input/output error")

    assert store.writability.refusal is None
    with monkeypatch.context() as failing:
        failing.setattr(disk, "truncate", fail)
        store.abandon_unflushed()
    assert store.writability.refusal == "the disk failed, and the unflushed data cannot be removed: EIO input/output error"
    with pytest.raises(StoreUnwritable, match="cannot be removed"):
        append(store)
    assert bodies(store) == [b"kept"]
    store.close()
    again = MessageStore.open(config, disk)
    assert not again.recovery.was_stopped_cleanly
    assert bodies(again)[0] == b"kept"


def test_a_disk_that_failed_is_not_trusted_again_because_it_has_space(store: MessageStore) -> None:
    store.refuse_writes("the disk failed")
    delete_expired(store, NOW)
    assert store.writability.refusal == "the disk failed"


def test_a_store_that_refuses_writes_still_reads(store: MessageStore) -> None:
    send(store, b"kept")
    store.refuse_writes("the disk failed")
    with pytest.raises(StoreUnwritable, match="the disk failed"):
        append(store)
    assert bodies(store) == [b"kept"]


def test_a_deleted_topic_can_be_created_again(store: MessageStore, config: StoreConfig) -> None:
    send(store, b"old", b"old 2")
    store.flush()
    delete_topic(store, b"orders")
    assert store.max_offset(b"orders", 0) == 0
    assert not (config.consume_queue_directory / "orders").exists()
    assert send(store, b"new")[0].queue_offset == 0
    assert bodies(store) == [b"new"]


def test_a_topic_deleted_while_messages_are_in_flight_can_be_created_again(store: MessageStore) -> None:
    send(store, b"old", b"old 2")
    append(store, b"on its way")
    on_its_way = store.write()
    delete_topic(store, b"orders")
    store.publish(on_its_way)
    assert send(store, b"new")[0].queue_offset == 0
    assert bodies(store) == [b"new"]


def test_deleting_a_topic_on_a_full_disk_leaves_the_batch_to_the_next_write() -> None:
    disk = CrashDisk()
    store = MessageStore.open(small_config(Path("/store")), disk)
    send(store, b"old", topic=b"other")
    append(store, b"waits for its write")
    disk.refuse_writes_after = 0
    delete_topic(store, b"other")
    with pytest.raises(StoreUnwritable):
        store.write()
    assert store.next_offset(b"orders", 0) == 0


def test_a_file_whose_sync_failed_is_synced_with_the_next_checkpoint(store: MessageStore) -> None:
    send(store, b"x")
    (failed,) = store.checkpoints.write_queues()
    assert [path.name for path in failed.files] == [f"{0:020d}"]
    assert [path.name for path in failed.directories][:3] == ["0", "orders", "consumequeue"]
    assert list(store.checkpoints.write_queues()) == []
    assert store.checkpoints.unsynced_queues() == failed
    assert store.checkpoints.finish(store.checkpoints.begin(), failed) is not None
    assert store.checkpoints.unsynced_queues() == Unsynced([], [])


def test_a_checkpoint_that_a_later_one_overtook_is_not_noted(store: MessageStore, config: StoreConfig) -> None:
    send(store, b"old", b"old 2")
    overtaken = store.checkpoints.begin()
    delete_topic(store, b"orders")
    after = (config.root / "progress.json").read_bytes()
    assert store.checkpoints.finish(overtaken, Unsynced([], [])) is None
    assert (config.root / "progress.json").read_bytes() == after


def test_a_file_that_is_gone_does_not_fail_the_checkpoint(store: MessageStore) -> None:
    send(store, b"x")
    store.checkpoints.begin()
    delete_topic(store, b"orders")
    store.flush()


def test_rounds_whose_sync_failed_do_not_make_the_index_durable(store: MessageStore) -> None:
    send(store, b"x", properties=b"KEYS\x01k")
    for _ in range(ROUNDS):
        mark = store.checkpoints.begin()
    store.checkpoints.finish(mark, Unsynced([], []))
    assert store._index.durable_offset == -1


def test_a_second_broker_is_kept_out(store: MessageStore, config: StoreConfig) -> None:
    with pytest.raises(StoreLocked):
        MessageStore.open(config)
