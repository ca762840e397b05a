"""Tests that the solution needs no other module of the project, and writes the same bytes as RocketMQ."""

import ast
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rocketmq_broker.message import record as our_record
from rocketmq_broker.message.tags import java_hash_code
from tutorials.build_your_own.solution import consume_queue, frames, record
from tutorials.build_your_own.solution.commit_log import FILE_NAME, LogFull
from tutorials.build_your_own.solution.frames import Command, FrameReader
from tutorials.build_your_own.solution.message_store import MessageStore
from tutorials.build_your_own.solution.record import Message, Record
from tutorials.build_your_own.solution.transactions import HALF_TOPIC, OP_TOPIC, Refused, Transactions

SOLUTION = Path(frames.__file__).parent
HOST = record.host_bytes("127.0.0.1", 10911)
ORDER = Message("orders", 2, b"an order", {"TAGS": "created", "colour": "größer"}, 7, 0, 1_700_000_000_000, HOST)


def imported_by(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


@pytest.mark.parametrize("path", sorted(SOLUTION.glob("*.py")), ids=lambda path: path.stem)
def test_it_needs_nothing_but_python(path: Path) -> None:
    own = "tutorials.build_your_own.solution"
    foreign = {
        name for name in imported_by(path) if name.split(".")[0] not in sys.stdlib_module_names and not name.startswith(own)
    }
    assert foreign == set()


@pytest.mark.parametrize("folder", ["tester", "stages"])
def test_the_tester_does_not_know_the_solution(folder: str) -> None:
    modules = (SOLUTION.parent / folder).glob("*.py")
    assert [path.name for path in modules if any(".solution" in name for name in imported_by(path))] == []


def test_a_record_has_the_bytes_that_our_broker_writes() -> None:
    data = record.encode(Record(ORDER, 3, 1234, 1_700_000_000_003, HOST))
    assert our_record.decode_record(data).encode() == data
    assert record.decode(data) == Record(ORDER, 3, 1234, 1_700_000_000_003, HOST)


@pytest.mark.parametrize("end", [0, 3, 50, 100, -1])
def test_a_torn_record_is_none(end: int) -> None:
    assert record.decode(record.encode(Record(ORDER, 0, 0, 0, HOST))[:end]) is None


def test_a_record_with_another_body_than_its_checksum_says_is_none() -> None:
    data = record.encode(Record(ORDER, 0, 0, 0, HOST))
    assert record.decode(data.replace(b"an order", b"no order")) is None


@pytest.mark.parametrize("tag", ["", "created", "paid", "größer", "shipped to customer", "🙂"])
def test_the_hash_of_a_tag_is_java_s(tag: str) -> None:
    assert consume_queue.tags_code(tag) == java_hash_code(tag)


@pytest.mark.parametrize("size", [1, 7, 50, 1000])
def test_frames_are_whole_however_the_bytes_are_cut(size: int) -> None:
    sent = [Command(34, opaque, body=b"body %d" % opaque) for opaque in range(3)]
    data = b"".join(map(frames.encode, sent))
    reader = FrameReader()
    received = [command for at in range(0, len(data), size) for command in reader.feed(data[at : at + size])]
    assert [(command.opaque, command.body) for command in received] == [(command.opaque, command.body) for command in sent]


LOG_SIZE = 64 * 1024


def opened(folder: Path) -> tuple[MessageStore, Transactions]:
    store = MessageStore(folder, HOST, LOG_SIZE)
    transactions = Transactions(store, timeout_s=60)
    transactions.recover(store.recover())
    return store, transactions


def topics(store: MessageStore) -> dict[str, int]:
    return {topic: sum(len(store.units(topic, queue_id)) for queue_id in range(4)) for topic in ("orders", HALF_TOPIC, OP_TOPIC)}


def test_a_decision_counts_after_a_restart(tmp_path: Path) -> None:
    _, transactions = opened(tmp_path)
    half = transactions.prepare(ORDER, "producers")
    transactions.end(record.ROLLED_BACK, half.commit_log_offset, half.queue_offset, "producers")
    _, transactions = opened(tmp_path)
    assert transactions.pending == {}
    with pytest.raises(Refused, match="no transaction is pending"):
        transactions.end(record.COMMITTED, half.commit_log_offset, half.queue_offset, "producers")


@pytest.mark.parametrize("first", [True, False], ids=["at the log's beginning", "later"])
def test_a_delivered_message_without_its_op_message_is_not_delivered_again(tmp_path: Path, first: bool) -> None:
    store, transactions = opened(tmp_path)
    if not first:
        store.append(ORDER)
    half = transactions.prepare(ORDER, "producers")
    transactions.end(record.COMMITTED, half.commit_log_offset, half.queue_offset, "producers")
    [op] = store.units(OP_TOPIC, 0)
    with (tmp_path / "commitlog" / FILE_NAME).open("r+b") as log:
        log.truncate(op.commit_log_offset)
        log.truncate(LOG_SIZE)
    before = topics(store)
    store, transactions = opened(tmp_path)
    assert transactions.pending == {}
    assert topics(store) == before


def test_another_group_decides_nothing(tmp_path: Path) -> None:
    _, transactions = opened(tmp_path)
    half = transactions.prepare(ORDER, "producers")
    with pytest.raises(Refused, match="group producers"):
        transactions.end(record.COMMITTED, half.commit_log_offset, half.queue_offset, "strangers")
    assert list(transactions.pending) == [half.commit_log_offset]


def test_a_full_log_refuses_and_keeps_what_it_has(tmp_path: Path) -> None:
    store, _ = opened(tmp_path)
    with pytest.raises(LogFull, match="the commit log is full"):
        store.append(replace(ORDER, body=bytes(LOG_SIZE)))
    store.append(ORDER)
    assert [found.message.body for found in MessageStore(tmp_path, HOST, LOG_SIZE).recover()] == [ORDER.body]
