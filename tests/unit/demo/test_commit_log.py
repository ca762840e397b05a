from pathlib import Path

from demo.commit_log import read_records, read_traces
from rocketmq_broker.message import sysflag, topics
from rocketmq_broker.message.record import encode_blank
from tests.stored_records import encoded

SEGMENT = 4096


class CommitLog:
    """A commit log with records as a broker writes them, in segments of 4 KiB."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.folder = store / "commitlog"
        self.folder.mkdir(parents=True)
        self.data = bytearray()

    def add(
        self, topic: str, *, body: bytes = b"", queue_offset: int = 0, prepared: int | None = None, stored: int = 1, **named: str
    ) -> int:
        at = len(self.data)
        flag = sysflag.TRANSACTION_COMMIT_TYPE if prepared is not None else 0
        self.data += encoded(
            topic, body, named, queue_offset=queue_offset, commit_log_offset=at, sys_flag=flag, store_timestamp=stored,
            prepared_transaction_offset=prepared or 0,
        )  # fmt: skip
        return at

    def roll(self) -> None:
        left = -len(self.data) % SEGMENT
        self.data += encode_blank(left) + bytes(left - 8)

    def write(self) -> Path:
        for start in range(0, len(self.data), SEGMENT):
            (self.folder / f"{start:020}").write_bytes(bytes(self.data[start : start + SEGMENT]).ljust(SEGMENT, b"\0"))
        return self.store


def half_of(log: CommitLog, *, queue_offset: int = 0, real_topic: str = "orders") -> int:
    return log.add(
        topics.HALF_TOPIC, queue_offset=queue_offset, REAL_TOPIC=real_topic, UNIQ_KEY=f"id-{queue_offset}", KEYS="order"
    )


def test_an_empty_commit_log_has_no_records(tmp_path: Path) -> None:
    assert list(read_records(CommitLog(tmp_path).write() / "commitlog")) == []


def test_a_broker_without_any_message_has_no_records(tmp_path: Path) -> None:
    assert read_traces(tmp_path) == []


def test_records_are_read_across_segments(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    first = log.add("orders")
    log.roll()
    second = log.add("orders")
    assert [record.commit_log_offset for record in read_records(log.write() / "commitlog")] == [first, second]
    assert second == SEGMENT


def test_a_trace_joins_half_message_op_message_and_committed_message(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    half = half_of(log, queue_offset=3)
    log.add("orders")
    log.add("orders", prepared=half, stored=7, TRANSACTION_CHECK_TIMES="2")
    log.add(topics.OP_HALF_TOPIC, body=b"3", stored=8)
    (trace,) = read_traces(log.write())
    assert (trace.transaction_id, trace.checks) == ("id-3", 2)
    assert [record.store_timestamp for record in trace.committed] == [7]
    assert trace.op is not None
    assert trace.op.store_timestamp == 8


def test_a_pending_transaction_has_neither_op_message_nor_committed_message(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    half_of(log)
    (trace,) = read_traces(log.write())
    assert (trace.op, trace.committed, trace.checks) == (None, [], 0)


def test_one_op_message_may_decide_several_half_messages(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    for queue_offset in range(3):
        half_of(log, queue_offset=queue_offset)
    log.add(topics.OP_HALF_TOPIC, body=b"0,2,")
    assert [trace.op is not None for trace in read_traces(log.write())] == [True, False, True]


def test_transactions_on_other_topics_are_left_out(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    half_of(log, real_topic="payments")
    assert read_traces(log.write()) == []


def test_a_half_message_that_was_copied_forward_stays_one_transaction(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    first = half_of(log, queue_offset=0)
    copied = log.add(topics.HALF_TOPIC, queue_offset=1, REAL_TOPIC="orders", UNIQ_KEY="id-0", KEYS="order")
    log.add(topics.OP_HALF_TOPIC, body=b"0", stored=5)
    (pending,) = read_traces(log.write())
    assert (pending.half.commit_log_offset, pending.op) == (first, None)
    log.add("orders", prepared=copied, stored=7)
    log.add(topics.OP_HALF_TOPIC, body=b"1", stored=8)
    (trace,) = read_traces(log.write())
    assert trace.op is not None
    assert (trace.op.store_timestamp, [record.store_timestamp for record in trace.committed]) == (8, [7])


def test_a_half_message_that_the_broker_put_aside_is_discarded(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    half_of(log)
    log.add(topics.CHECK_MAX_TIME_TOPIC, UNIQ_KEY="id-0", REAL_TOPIC="orders")
    log.add(topics.OP_HALF_TOPIC, body=b"0")
    (trace,) = read_traces(log.write())
    assert trace.is_discarded
