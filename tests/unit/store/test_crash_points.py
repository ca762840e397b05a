"""After a crash at any point, the store works, and contains each acknowledged message once, in its position."""

from pathlib import Path

import pytest

from rocketmq_broker.message.record import decode_record
from rocketmq_broker.store import ConsumerOffsets, MessageStore, StoreConfig, Unsynced
from rocketmq_broker.store.queues.unit_files import UNIT_SIZE
from tests.unit.store.conftest import NOW, append, bodies, send, small_config
from tests.unit.store.crash_disk import Crash, CrashDisk, Operation

CONFIG = small_config(Path("/store"))
WITHOUT_INDEX = small_config(Path("/store"), is_index_enabled=False)
THE_OTHERS = [crash for crash in Crash if crash is not Crash.UNSYNCED_DROPPED]
TOPICS = (b"half", b"op", b"orders")


class Run:
    """A broker with SYNC_FLUSH that sends batches. Records after which operation each message was acknowledged."""

    def __init__(self, config: StoreConfig) -> None:
        self.disk = CrashDisk()
        self.acknowledged: list[tuple[int, bytes, bytes]] = []
        self.sent = 0
        self.store = MessageStore.open(config, self.disk)

    def batch(self, size: int, *, checkpoint_midway: bool = False) -> None:
        batch = []
        for _ in range(size):
            topic = TOPICS[self.sent % len(TOPICS)]
            body = b"%s %d" % (topic, self.sent)
            append(self.store, body, topic=topic, properties=b"KEYS\x01k%d" % self.sent, store_timestamp=NOW + self.sent * 1000)
            batch.append((topic, body))
            self.sent += 1
        position = self.store.write()
        if checkpoint_midway:
            self.checkpoint()
        for path in self.store.segments_to_flush(self.store.flushed_position, position):
            self.disk.sync(self.disk.open(path))
        self.store.mark_flushed(position)
        self.store.publish(position)
        self.acknowledged += [(len(self.disk.operations), *message) for message in batch]

    def checkpoint(self) -> None:
        mark = self.store.checkpoints.begin()
        for _ in self.store.checkpoints.write_queues():
            pass
        queues = self.store.checkpoints.unsynced_queues()
        self._sync(queues)
        self._sync(self.store.checkpoints.write_index())
        if save := self.store.checkpoints.finish(mark, queues):
            save()

    def _sync(self, unsynced: Unsynced) -> None:
        for path in unsynced.files:
            self.disk.sync(self.disk.open(path))
        for path in unsynced.directories:
            self.disk.sync_directory(path)


def a_run(config: StoreConfig) -> Run:
    run = Run(config)
    for size in (1, 3, 2, 9, 1):
        run.batch(size)
    run.checkpoint()
    for size in (4, 1, 7):
        run.batch(size, checkpoint_midway=size == 4)
        run.checkpoint()
    run.batch(5, checkpoint_midway=True)
    run.store.close()
    return run


def check(config: StoreConfig, image: CrashDisk, acknowledged: list[tuple[bytes, bytes]], everything: list[bytes]) -> None:
    store = MessageStore.open(config, image)
    for topic in TOPICS:
        got = bodies(store, topic)
        assert len(got) == len(set(got)), "doubled"
        assert set(got) <= set(everything), "invented"
        wanted = [body for name, body in acknowledged if name == topic]
        assert got[: len(wanted)] == wanted, "lost or out of order"
        (following,) = send(store, b"after the crash", topic=topic)
        assert following.queue_offset == store.max_offset(topic, 0) - 1
        assert bodies(store, topic) == [*got, b"after the crash"]
    for number in range(0, len(acknowledged) if config.is_index_enabled else 0, 3):
        found = store.query(acknowledged[number][0], f"k{number}", 32, 0, NOW * 2).records
        assert [decode_record(record).body for record in found] == [acknowledged[number][1]]
    before = [bodies(store, topic) for topic in TOPICS]
    store.close()
    again = MessageStore.open(config, image)
    assert [bodies(again, topic) for topic in TOPICS] == before


@pytest.mark.parametrize("config", [CONFIG, pytest.param(WITHOUT_INDEX, marks=pytest.mark.slow)], ids=["index", "no index"])
@pytest.mark.parametrize(
    "crash", [Crash.UNSYNCED_DROPPED, *(pytest.param(crash, marks=pytest.mark.slow) for crash in THE_OTHERS)]
)
def test_a_crash_after_any_operation_loses_nothing_acknowledged(crash: Crash, config: StoreConfig) -> None:
    run = a_run(config)
    operations = list(run.disk.operations)
    everything = [body for _, _, body in run.acknowledged]
    images = 0
    for point in range(len(operations) + 1):
        acknowledged = [(topic, body) for count, topic, body in run.acknowledged if count <= point]
        for seed in range(2 if crash is Crash.UNSYNCED_TORN else 1):
            try:
                check(config, run.disk.image(operations[:point], crash, seed + point * 7), acknowledged, everything)
            except Exception as error:
                last = operations[point - 1] if point else None
                raise AssertionError(f"{crash.name} after operation {point} ({_short(last)}), seed {seed}: {error!r}") from error
            images += 1
    assert images > 100


@pytest.mark.parametrize("crash", Crash)
def test_a_crash_while_recovering_loses_nothing_either(crash: Crash) -> None:
    run = a_run(CONFIG)
    acknowledged = [(topic, body) for _, topic, body in run.acknowledged]
    everything = [body for _, body in acknowledged]
    killed = run.disk.image(run.disk.operations[:-6], Crash.UNSYNCED_DROPPED)
    kept = [(topic, body) for count, topic, body in run.acknowledged if count <= len(run.disk.operations) - 6]
    base = _as_operations(killed)
    recovering = killed.image(base, Crash.PROCESS_KILLED)
    recovering.operations = list(base)
    MessageStore.open(CONFIG, recovering)
    for point in range(len(base), len(recovering.operations) + 1):
        check(CONFIG, recovering.image(recovering.operations[:point], crash, point), kept, everything)


def test_what_a_start_after_a_kill_has_shown_survives_a_power_failure() -> None:
    run = Run(CONFIG)
    segments = CONFIG.commit_log_segment_size
    for number in range(30):
        append(run.store, b"%d" % number + bytes(100))
    assert run.store.write() > 2 * segments
    killed = run.disk.image(run.disk.operations, Crash.PROCESS_KILLED)
    shown = bodies(MessageStore.open(CONFIG, killed))
    assert len(shown) == 30
    killed.memory.lose_power()
    assert bodies(MessageStore.open(CONFIG, CrashDisk(killed.memory.killed()))) == shown


def test_a_record_of_which_only_a_part_was_written_is_no_message() -> None:
    """A partly written record is not a message, even if the checksum, which covers only the body, is correct."""
    run = Run(CONFIG)
    run.batch(1)
    whole = run.store.written_position
    append(
        run.store,
        b"torn",
        topic=b"orders",
        properties=b"KEYS\x01k\x02UNIQ_KEY\x01an id of some length\x02CLUSTER\x01DefaultCluster",
    )
    end = run.store.write()
    path = Path("/store/commitlog") / f"{0:020}"
    for written in range(whole + 1, end):
        disk = run.disk.image(run.disk.operations, Crash.PROCESS_KILLED)
        disk.write(disk.open(path), bytes(end - written), written)
        assert b"torn" not in bodies(MessageStore.open(CONFIG, disk)), written - whole


@pytest.mark.parametrize("crash", Crash)
def test_a_crash_while_damaged_units_are_mended_loses_nothing(crash: Crash) -> None:
    run = a_run(CONFIG)
    acknowledged = [(topic, body) for _, topic, body in run.acknowledged]
    run.store = MessageStore.open(CONFIG, run.disk)
    for topic in TOPICS:
        file = run.disk.open(CONFIG.consume_queue_directory / topic.decode() / "0" / f"{0:020d}")
        run.disk.write(file, bytes(3 * UNIT_SIZE), 2 * UNIT_SIZE)
        run.disk.sync(file)
    damaged = len(run.disk.operations)
    for topic in TOPICS:
        assert bodies(run.store, topic) == [body for name, body in acknowledged if name == topic]
    run.batch(4)
    run.checkpoint()
    assert len(run.disk.operations) > damaged + 3 * 3
    for point in range(damaged, len(run.disk.operations) + 1):
        kept = [(topic, body) for count, topic, body in run.acknowledged if count <= point]
        image = run.disk.image(run.disk.operations[:point], crash, point)
        check(CONFIG, image, kept, [body for _, _, body in run.acknowledged])


@pytest.mark.parametrize("crash", Crash)
def test_a_config_file_is_the_old_or_the_new_one_after_any_crash(crash: Crash) -> None:
    disk = CrashDisk()
    offsets = ConsumerOffsets(CONFIG.config_directory, disk)
    saved: list[tuple[int, int]] = [(0, -1)]
    for offset in range(4):
        offsets.commit("group", "orders", 0, offset)
        offsets.persist()
        saved.append((len(disk.operations), offset))
    for point in range(len(disk.operations) + 1):
        loaded = ConsumerOffsets(CONFIG.config_directory, disk.image(disk.operations[:point], crash, point))
        loaded.load()
        durable = max(offset for count, offset in saved if count <= point)
        got = loaded.get("group", "orders", 0)
        assert (-1 if got is None else got) in (durable, durable + 1), f"after operation {point}"


def _as_operations(disk: CrashDisk) -> list[Operation]:
    """Returns the operations that write the content of `disk` to an empty disk and make it durable."""
    made = CrashDisk()
    for path in disk.memory.paths:
        file = made.open(path, create=True)
        made.write(file, disk.memory.content(path), 0)
        made.truncate(file, disk.size(path) or 0)
        made.sync(file)
    for directory in {path.parent for path in disk.memory.paths}:
        made.sync_directory(directory)
    return made.operations


def _short(operation: Operation | None) -> str:
    return f"{operation.name} {operation.inode} {operation.arguments[-1]!r:.40}" if operation else "none"
