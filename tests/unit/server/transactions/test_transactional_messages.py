import contextlib
from collections.abc import Coroutine
from typing import Any

import pytest

from rocketmq_broker.message import properties as props
from rocketmq_broker.message.errors import IllegalMessage
from rocketmq_broker.message.ids import offset_message_id, parse_offset_message_id
from rocketmq_broker.message.record import QUEUE_OFFSET_POSITION, decode_record
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.remoting.dispatcher import RequestRefused
from rocketmq_broker.server.transactions.resume_processor import MAX_AT_ONCE
from rocketmq_broker.store import Appended, StoreUnwritable
from rocketmq_broker.store.memory_files import MemoryFiles
from rocketmq_broker.transaction.decision import Refusal
from rocketmq_broker.transaction.messages.half_message import read_half_message
from tests.unit.server.transaction_broker import (
    DISCARD_TOPIC,
    HALF_TOPIC,
    OP_TOPIC,
    STORE_HOST,
    TRANSACTION_GROUP,
    AtOnce,
    Producer,
    TransactionBroker,
)
from tests.unit.store.conftest import append
from tests.unit.transaction.records import pending, rewritten_by_apache

COMMIT, ROLLBACK, UNKNOWN = 8, 12, 0


def refused(broker: TransactionBroker, *args: object, **named: object) -> RequestRefused:
    with pytest.raises(RequestRefused) as caught:
        broker.end(*args, **named)  # type: ignore[arg-type]
    return caught.value


def test_a_half_message_is_not_delivered(broker: TransactionBroker, producer: Producer) -> None:
    broker.send(producer, "A")

    assert broker.delivered() == []
    (half,) = broker.records(HALF_TOPIC)
    assert (half.get_property("REAL_TOPIC"), half.get_property("REAL_QID"), half.queue_id) == ("orders", "2", 0)


def test_commit_delivers_the_message_once_and_closes_the_half_message(broker: TransactionBroker, producer: Producer) -> None:
    half = broker.send(producer, "A", b"one order")

    broker.end(producer, half, COMMIT, is_oneway=True)

    (message,) = broker.records("orders", 2)
    assert message.body == b"one order"
    assert message.sys_flag & 0xC == COMMIT
    assert message.prepared_transaction_offset == half.commit_log_offset
    assert message.born_host == producer.born_host
    (op,) = broker.records(OP_TOPIC)
    assert (op.body, op.get_property(props.TAGS)) == (b"%d" % half.queue_offset, "d")
    assert producer.answers == []


def test_rollback_leaves_the_half_message_invisible_and_closes_it(broker: TransactionBroker, producer: Producer) -> None:
    half = broker.send(producer, "A")

    broker.end(producer, half, ROLLBACK)

    assert broker.delivered() == []
    assert [op.body for op in broker.records(OP_TOPIC)] == [b"0"]
    assert [answer.code for answer in producer.answers] == [ResponseCode.SUCCESS]


def test_a_commit_is_answered_and_visible_only_when_it_is_on_disk(broker: TransactionBroker, producer: Producer) -> None:
    half = broker.send(producer, "A")

    broker.end(producer, half, COMMIT, flush=False)
    assert producer.answers == []
    assert broker.delivered() == []

    broker.flush()
    assert [answer.code for answer in producer.answers] == [ResponseCode.SUCCESS]
    assert broker.delivered() == ["A"]


@pytest.mark.parametrize("first", [COMMIT, ROLLBACK])
@pytest.mark.parametrize("second", [COMMIT, ROLLBACK])
@pytest.mark.parametrize("in_one_batch", [True, False])
def test_the_first_decision_wins(
    broker: TransactionBroker, producer: Producer, first: int, second: int, in_one_batch: bool
) -> None:
    half = broker.send(producer, "A")
    broker.end(producer, half, first, flush=not in_one_batch)

    error = refused(broker, producer, half, second)
    broker.flush()

    assert error.code == ResponseCode.SYSTEM_ERROR
    assert "already" in error.remark
    assert broker.delivered() == (["A"] if first == COMMIT else [])
    assert len(broker.records(OP_TOPIC)) == 1
    assert broker.messages.counts.refusals.total() == 1


def test_unknown_leaves_the_transaction_pending(broker: TransactionBroker, producer: Producer) -> None:
    half = broker.send(producer, "A")

    broker.end(producer, half, UNKNOWN, is_oneway=True)

    assert len(broker.messages) == 1
    assert broker.messages.counts.unknown_answers == 1


def test_another_group_decides_nothing(broker: TransactionBroker, producer: Producer) -> None:
    half = broker.send(producer, "A")

    assert "producer group" in refused(broker, producer, half, COMMIT, group="other").remark
    assert broker.delivered() == []
    assert broker.messages.counts.refusals[Refusal.PRODUCER_GROUP] == 1


def test_wrong_offsets_decide_nothing(broker: TransactionBroker, producer: Producer) -> None:
    half = broker.send(producer, "A")
    plain = append(broker.store, topic=b"plain")
    broker.flush()

    assert "state table offset" in refused(broker, producer, Appended(half.commit_log_offset, 9, 0), COMMIT).remark
    assert "commit log offset" in refused(broker, producer, plain, COMMIT).remark
    assert "no half message" in refused(broker, producer, Appended(7, half.queue_offset, 0), COMMIT).remark
    assert broker.delivered() == []


def test_a_commit_that_could_not_be_written_leaves_the_transaction_pending(broker: TransactionBroker, producer: Producer) -> None:
    half = broker.send(producer, "A")
    broker.disk.is_full = True
    broker.end(producer, half, COMMIT)
    assert broker.delivered() == []

    broker.disk.is_full = False
    broker.end(producer, half, COMMIT)

    assert broker.delivered() == ["A"]
    assert broker.messages.counts.take_backs == 1


def test_a_half_message_that_could_not_be_written_is_no_transaction(broker: TransactionBroker, producer: Producer) -> None:
    broker.disk.is_full = True
    lost = broker.send(producer, "A")
    broker.disk.is_full = False

    assert len(broker.messages) == 0
    kept = broker.send(producer, "B")
    assert kept.queue_offset == lost.queue_offset == 0
    broker.end(producer, kept, COMMIT)
    assert broker.delivered() == ["B"]


def test_a_store_that_refuses_writes_refuses_the_decision_and_keeps_the_transaction(
    broker: TransactionBroker, producer: Producer
) -> None:
    half = broker.send(producer, "A")
    broker.store.refuse_writes("read-only")

    with pytest.raises(StoreUnwritable):
        broker.end(producer, half, COMMIT)

    assert len(broker.messages) == 1


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"DELAY": "3"}, "cannot be delayed"),
        ({"LONG": "x" * 32760}, "properties too long"),
        *(
            ({"topic": topic}, "does not accept transactional messages")
            for topic in (b"%RETRY%credit_service", b"%DLQ%credit_service", b"SCHEDULE_TOPIC_XXXX")
        ),
        *(({"PGROUP": group}, "illegal producer group") for group in ("a b", "credit\nservice", "g" * 256)),
    ],
)
def test_what_cannot_be_a_transaction_is_refused(
    broker: TransactionBroker, producer: Producer, sent: dict[str, Any], words: str
) -> None:
    with pytest.raises(IllegalMessage, match=words):
        broker.send(producer, "A", **sent)
    assert (broker.records(HALF_TOPIC), len(broker.messages)) == ([], 0)


def test_a_transaction_whose_queue_is_gone_after_a_restart_is_delivered_to_another(
    broker: TransactionBroker, producer: Producer
) -> None:
    half = broker.send(producer, "A", queue_id=7)
    restarted = broker.restarted(queue_nums=4)

    restarted.end(producer, half, COMMIT)

    assert restarted.delivered(3) == ["A"]


def test_a_message_resumed_after_its_queue_is_gone_is_delivered_to_another(broker: TransactionBroker, producer: Producer) -> None:
    message_id = discard(broker, producer, "A", queue_id=7)
    restarted = broker.restarted(queue_nums=4)

    restarted.resume(producer, message_id)
    half = restarted.records(HALF_TOPIC)[-1]
    restarted.end(producer, Appended(half.commit_log_offset, half.queue_offset, 0), COMMIT)

    assert restarted.delivered(3) == ["A"]


def test_transactions_can_be_forbidden() -> None:
    broker = TransactionBroker(reject_transaction_message=True)

    with pytest.raises(RequestRefused, match="forbidden") as caught:
        broker.send(Producer(), "A")

    assert caught.value.code == ResponseCode.NO_PERMISSION


def discard(broker: TransactionBroker, producer: Producer, transaction_id: str, *, queue_id: int = 2) -> str:
    """Sends a transaction that is never decided. Returns the id of the discarded message."""
    broker.send(producer, transaction_id, queue_id=queue_id)
    tick_until_discarded(broker)
    record = broker.records(DISCARD_TOPIC)[-1]
    return offset_message_id(STORE_HOST, record.commit_log_offset)


def tick_until_discarded(broker: TransactionBroker) -> None:
    for elapsed_ms in (1000, 2000, 2000, 2000):
        broker.tick(elapsed_ms)


def test_a_discarded_message_can_be_resumed_and_committed(broker: TransactionBroker, producer: Producer) -> None:
    message_id = discard(broker, producer, "A")
    producer.checks.clear()

    broker.resume(producer, message_id)
    broker.tick(1000)

    (check,) = producer.checks
    assert check.times == 1
    broker.end(producer, check, COMMIT)
    assert broker.delivered() == ["A"]
    assert producer.answers[0].code == ResponseCode.SUCCESS


@pytest.mark.parametrize("is_index_enabled", [True, False])
def test_a_message_is_resumed_once(is_index_enabled: bool) -> None:
    broker, producer = TransactionBroker(is_index_enabled=is_index_enabled), Producer()
    broker.online(producer)
    message_id = discard(broker, producer, "A")
    broker.resume(producer, message_id)

    with pytest.raises(RequestRefused, match="already resumed"):
        broker.resume(producer, message_id)
    with pytest.raises(RequestRefused, match="already resumed"):
        broker.restarted().resume(producer, message_id)


def test_a_resumed_message_waits_for_nobody_any_more_also_after_a_restart(broker: TransactionBroker, producer: Producer) -> None:
    message_id = discard(broker, producer, "A")
    assert broker.parked.discarded() == {"order_service": 1}

    broker.resume(producer, message_id)

    assert broker.parked.discarded() == {"order_service": 0}
    assert sum(broker.restarted().parked.discarded().values()) == 0


def test_a_message_that_another_broker_resumed_waits_for_nobody_once_an_operator_tries_to_resume_it(
    broker: TransactionBroker, producer: Producer
) -> None:
    message_id = discard(broker, producer, "A")
    broker.messages.resume(
        read_half_message(broker.store.read(parse_offset_message_id(message_id).commit_log_offset)), broker.now_ms
    )
    broker.flush()
    after = broker.restarted()
    assert after.parked.discarded() == {"order_service": 1}

    for _ in range(2):
        with pytest.raises(RequestRefused, match="already resumed"):
            after.resume(producer, message_id)
        after.flush()

    assert after.parked.discarded() == {"order_service": 0}
    assert len(after.records("rmq_sys_PARKED_MARK_TOPIC")) == 1


def test_a_discarded_message_has_one_line_in_the_log_though_its_first_discard_was_lost(
    broker: TransactionBroker, producer: Producer, caplog: pytest.LogCaptureFixture
) -> None:
    broker.online(producer)
    broker.send(producer, "A")
    for _ in range(3):
        broker.tick(2000)
    broker.disk.is_full = True
    broker.tick(2000)
    broker.disk.is_full = False

    broker.tick(4000)

    assert broker.discarded() == ["A"]
    (line,) = [record.getMessage() for record in caplog.records if "rocketmq_broker.admin resume" in record.getMessage()]
    assert "transaction A" in line


def test_a_message_is_resumed_once_though_many_others_have_its_id(broker: TransactionBroker, producer: Producer) -> None:
    message_id = discard(broker, producer, "A")
    broker.resume(producer, message_id)
    for _ in range(64):
        broker.send(Producer("127.0.0.1:6666"), "A", b"forged")

    with pytest.raises(RequestRefused, match="already resumed"):
        broker.resume(producer, message_id)


def test_a_message_is_resumed_once_though_the_second_request_comes_before_the_disk_has_the_first(
    broker: TransactionBroker, producer: Producer
) -> None:
    message_id = discard(broker, producer, "A")
    broker.resume(producer, message_id, flush=False)

    with pytest.raises(RequestRefused, match="already being resumed"):
        broker.resume(producer, message_id, flush=False)
    broker.flush()
    assert len(broker.messages) == 1


def discarded_before_many(broker: TransactionBroker, producer: Producer) -> str:
    """Returns the id of a discarded message that is followed by more half messages than one search reads."""
    message_id = discard(broker, producer, "A")
    for number in range(MAX_AT_ONCE):
        broker.send(producer, f"B{number}", flush=False)
    broker.flush()
    return message_id


def test_a_message_is_resumed_once_though_a_long_search_must_tell_whether_it_was() -> None:
    broker, producer = TransactionBroker(is_index_enabled=False), Producer()
    broker.online(producer)
    message_id = discarded_before_many(broker, producer)

    broker.resume(producer, message_id)
    broker.resume(producer, message_id)

    assert [answer.code for answer in producer.answers] == [ResponseCode.SUCCESS, ResponseCode.SYSTEM_ERROR]
    assert "already resumed" in (producer.answers[1].remark or "")
    assert [half.get_property(props.UNIQUE_KEY) for half in broker.records(HALF_TOPIC)].count("A") == 2


def test_while_one_search_goes_on_another_is_not_begun_and_no_event_loop_stands_still() -> None:
    broker, producer = TransactionBroker(is_index_enabled=False), Producer()
    broker.online(producer)
    message_id = discarded_before_many(broker, producer)
    later: list[Coroutine[Any, Any, None]] = []
    broker.tasks.start = lambda name, work: later.append(work)  # type: ignore[assignment]

    broker.resume(producer, message_id)
    assert producer.answers == []
    with pytest.raises(RequestRefused) as caught:
        broker.resume(producer, message_id)
    assert caught.value.code is ResponseCode.SYSTEM_BUSY

    AtOnce().start("", later.pop())
    broker.flush()
    assert [answer.code for answer in producer.answers] == [ResponseCode.SUCCESS]


def test_a_resumption_that_was_lost_can_be_tried_again(broker: TransactionBroker, producer: Producer) -> None:
    message_id = discard(broker, producer, "A")
    broker.disk.is_full = True
    broker.resume(producer, message_id)
    assert len(broker.messages) == 0

    broker.disk.is_full = False
    broker.resume(producer, message_id)
    assert len(broker.messages) == 1


def test_a_message_discarded_again_can_be_resumed_again(broker: TransactionBroker, producer: Producer) -> None:
    broker.resume(producer, discard(broker, producer, "A"))
    tick_until_discarded(broker)
    assert broker.discarded() == ["A", "A"]

    broker.resume(producer, offset_message_id(STORE_HOST, broker.records(DISCARD_TOPIC)[-1].commit_log_offset))

    assert len(broker.messages) == 1


def test_only_discarded_messages_are_resumed(broker: TransactionBroker, producer: Producer) -> None:
    half = broker.send(producer, "A")

    with pytest.raises(RequestRefused, match="not discarded"):
        broker.resume(producer, offset_message_id(STORE_HOST, half.commit_log_offset))
    with pytest.raises(RequestRefused, match="offset message id must be"):
        broker.resume(producer, "nonsense")
    with pytest.raises(RequestRefused, match="cannot be resumed"):
        broker.resume(producer, offset_message_id(STORE_HOST, 12345))


def test_a_commit_after_the_discard_is_refused(broker: TransactionBroker, producer: Producer) -> None:
    half = broker.send(producer, "A")
    tick_until_discarded(broker)

    assert "discarded already" in refused(broker, producer, half, COMMIT).remark
    assert broker.delivered() == []


# What a restart finds.


def test_a_pending_transaction_survives_a_kill(broker: TransactionBroker, producer: Producer) -> None:
    half = broker.send(producer, "A")
    decided = broker.send(producer, "B")
    broker.end(producer, decided, COMMIT)

    after = broker.restarted()

    assert [t.commit_log_offset for t in after.messages] == [half.commit_log_offset]
    after.end(producer, half, COMMIT)
    assert after.delivered() == ["B", "A"]
    assert "already" in refused(after, producer, decided, COMMIT).remark
    assert "already" in refused(after.restarted(), producer, half, ROLLBACK).remark


def test_what_was_not_flushed_is_not_committed_after_a_power_failure(broker: TransactionBroker, producer: Producer) -> None:
    half = broker.send(producer, "A")
    broker.end(producer, half, COMMIT, flush=False)
    broker.store.write()

    after = broker.restarted(broker.files.powered_off())

    assert after.delivered() == []
    after.end(producer, half, ROLLBACK)
    assert after.delivered() == []


def without_the_last_op_message(broker: TransactionBroker) -> MemoryFiles:
    """Returns the files after a crash in which the last record, an op message for half message 0, was not written."""
    op_size = 91 + len(OP_TOPIC) + len(b"0") + len("TAGS?d")
    end = broker.store.written_position
    files = broker.files.killed()
    segment = next(path for path in files.paths if path.parent.name == "commitlog")
    files.write(files.open(segment), bytes(op_size), end - op_size)
    return files


def spoil(files: MemoryFiles, commit_log_offset: int) -> None:
    """Damages the body of the record at this commit log offset."""
    segment = next(path for path in files.paths if path.name == f"{commit_log_offset >> 16 << 16:020d}")
    files.write(files.open(segment), b"\xff", commit_log_offset % (1 << 16) + 88)


def test_a_commit_whose_flush_is_late_is_not_asked_about_and_not_delivered_again(
    broker: TransactionBroker, producer: Producer
) -> None:
    """A committed message is neither checked nor delivered again while its records are not flushed.

    Issue 10199 of apache/rocketmq reports this fault for brokers that collect op messages before they store them.
    """
    half = broker.send(producer, "A")
    broker.end(producer, half, COMMIT, flush=False)
    for _ in range(3):
        broker.now_ms += 120_000
        broker.check_service.handle_due(broker.now_ms)
    assert producer.checks == []
    assert "already" in refused(broker, producer, half, COMMIT, from_check=True, flush=False).remark
    broker.flush()
    broker.tick(120_000)
    assert (producer.checks, broker.delivered(), len(broker.records(OP_TOPIC))) == ([], ["A"], 1)


@pytest.mark.parametrize("decision", [COMMIT, ROLLBACK])
def test_a_commit_of_which_a_power_failure_left_the_op_message_alone_is_asked_for_again(
    broker: TransactionBroker, producer: Producer, decision: int
) -> None:
    half = broker.send(producer, "A")
    lost = broker.store.written_position
    broker.end(producer, half, COMMIT)
    files = broker.files.killed()
    spoil(files, lost)

    first = broker.restarted(files)
    assert first.store.recovery.damaged
    assert first.delivered() == []
    first.store.checkpoints.run_all()
    after = first.restarted()
    assert not after.store.recovery.damaged
    assert [transaction.commit_log_offset for transaction in after.messages] == [half.commit_log_offset]
    after.end(producer, half, decision)

    last = after.restarted()
    assert last.delivered() == (["A"] if decision == COMMIT else [])
    assert list(last.messages) == []


def test_a_committed_message_that_recovery_passed_over_is_no_evidence_of_a_commit() -> None:
    """A committed message that recovery has skipped does not prove that its transaction was committed.

    The index still finds the record, but no consumer does, because its queue offset does not fit into the queue.
    """
    broker, producer = TransactionBroker(is_index_enabled=True), Producer()
    half = broker.send(producer, "A")
    committed = broker.store.written_position
    broker.end(producer, half, COMMIT)
    broker.end(producer, broker.send(producer, "B"), COMMIT)
    broker.store.checkpoints.run_all()
    passed_over = decode_record(broker.store.read(committed))
    files = broker.files.killed()
    for path in [path for path in files.paths if path.parent.parent.name == passed_over.topic.decode()]:
        files.unlink(path)
    segment = next(path for path in files.paths if path.parent.name == "commitlog")
    files.write(files.open(segment), (1 << 40).to_bytes(8, "big"), committed + QUEUE_OFFSET_POSITION)

    after = broker.restarted(files)
    assert after.delivered() == ["B"]
    assert [transaction.commit_log_offset for transaction in after.messages] == [half.commit_log_offset]
    after.end(producer, half, COMMIT)
    assert after.delivered() == ["B", "A"]


def test_damage_elsewhere_casts_no_doubt_on_a_decision(broker: TransactionBroker, producer: Producer) -> None:
    half = broker.send(producer, "A")
    lost = broker.send(producer, "B")
    broker.end(producer, half, COMMIT)
    files = broker.files.killed()
    spoil(files, lost.commit_log_offset)

    after = broker.restarted(files)

    assert after.store.recovery.damaged
    assert list(after.messages) == []
    assert after.delivered() == ["A"]


@pytest.mark.parametrize("is_index_enabled", [True, False])
@pytest.mark.parametrize("cut", ["nothing", "half of the op message", "the op message", "both", "both and more"])
def test_wherever_a_crash_cuts_a_commit_the_check_that_follows_delivers_it_once(cut: str, is_index_enabled: bool) -> None:
    broker, producer = TransactionBroker(is_index_enabled=is_index_enabled), Producer()
    half = broker.send(producer, "A")
    half_end = broker.store.written_position
    broker.end(producer, half, COMMIT)
    end, op_size = broker.store.written_position, 91 + len(OP_TOPIC) + len(b"0") + len("TAGS?d")
    begin = {
        "nothing": end,
        "half of the op message": end - op_size // 2,
        "the op message": end - op_size,
        "both": half_end,
        "both and more": half_end,
    }[cut]
    files = broker.files.killed()
    segment = next(path for path in files.paths if path.parent.name == "commitlog")
    files.write(files.open(segment), bytes(end - begin), begin)
    for path in [path for path in files.paths if cut == "both and more" and path.parent.parent.parent.name == "consumequeue"]:
        files.write(files.open(path), bytes(len(files.content(path))), 0)

    after = broker.restarted(files)
    after.online(producer)
    for _ in range(3):
        after.tick(120_000)
        for check in producer.checks:
            with contextlib.suppress(RequestRefused):
                after.end(producer, check, COMMIT, from_check=True)
        after = after.restarted()
        after.online(producer)
    is_asked = cut.startswith("both")
    assert (bool(producer.checks), after.delivered()) == (is_asked, ["A"])


@pytest.mark.parametrize("is_index_enabled", [True, False])
def test_a_crash_between_the_committed_message_and_its_op_message_does_not_deliver_twice(is_index_enabled: bool) -> None:
    broker, producer = TransactionBroker(is_index_enabled=is_index_enabled), Producer()
    half = broker.send(producer, "A")
    other = broker.send(producer, "B")
    broker.end(producer, half, COMMIT)

    after = broker.restarted(without_the_last_op_message(broker))

    assert after.delivered() == ["A"]
    assert after.completed == 1
    assert [op.body for op in after.records(OP_TOPIC)] == [b"0"]
    assert "already" in refused(after, producer, half, COMMIT).remark
    assert [t.commit_log_offset for t in after.messages] == [other.commit_log_offset]
    assert after.restarted().completed == 0


def test_a_restart_searches_for_no_message_of_a_transaction_that_began_after_the_last_one_of_its_topic() -> None:
    def reads_of_a_restart(pending: int) -> int:
        broker, producer = TransactionBroker(), Producer()
        broker.end(producer, broker.send(producer, "committed"), COMMIT)
        for number in range(pending):
            broker.send(producer, f"pending {number}")
        files = broker.files.killed()
        assert len(broker.restarted(files).messages) == pending
        return files.reads

    assert reads_of_a_restart(200) - reads_of_a_restart(10) < 190


@pytest.mark.parametrize("is_index_enabled", [True, False])
def test_a_crash_between_the_discarded_message_and_its_op_message_does_not_revive_it(is_index_enabled: bool) -> None:
    broker, producer = TransactionBroker(is_index_enabled=is_index_enabled), Producer()
    broker.online(producer)
    half = broker.send(producer, "A")
    tick_until_discarded(broker)

    after = broker.restarted(without_the_last_op_message(broker))

    assert len(after.messages) == 0
    assert "already" in refused(after, producer, half, COMMIT).remark
    assert after.discarded() == ["A"]


def test_a_commit_without_its_op_message_is_found_though_many_others_have_its_id() -> None:
    broker, producer, forger = TransactionBroker(), Producer(), Producer("127.0.0.1:6666")
    half = broker.send(producer, "A", b"genuine")
    broker.now_ms += 1
    forged = [broker.send(forger, "A", b"forged") for _ in range(70)]
    broker.end(producer, half, COMMIT)
    for one in forged[1:]:
        broker.end(forger, one, COMMIT)
    ops = broker.records(OP_TOPIC)
    broker.end(forger, forged[0], COMMIT)
    files = broker.files.killed()
    spoil(files, ops[0].commit_log_offset)

    after = broker.restarted(files)

    assert after.completed == 1
    assert "already" in refused(after, producer, half, COMMIT).remark
    assert [record.body for record in after.records("orders", 2)].count(b"genuine") == 1


def left_by_apache(broker: TransactionBroker, producer: Producer) -> tuple[Appended, Appended]:
    """Appends a half message and the copy that Apache's broker makes of it at a check."""
    first = broker.send(producer, "A")
    data = broker.store.read(first.commit_log_offset)
    record = decode_record(
        rewritten_by_apache(data, commit_log_offset=0, queue_offset=0, store_ms=0, TRANSACTION_CHECK_TIMES="1")
    )
    copied = {name: getattr(record, name) for name in ("topic", "body", "properties", "born_timestamp", "born_host")}
    copy = append(broker.store, **copied, store_timestamp=broker.now_ms)
    broker.flush()
    return first, copy


@pytest.mark.parametrize("half_offset", [0, 1], ids=["in sight", "passed already"])
@pytest.mark.parametrize("chosen", [0, 1], ids=["the first", "the copy"])
def test_a_decision_about_any_of_apaches_copies_counts_once(half_offset: int, chosen: int) -> None:
    broker, producer = TransactionBroker(), Producer()
    copies = left_by_apache(broker, producer)
    broker.consumer_offsets.commit(TRANSACTION_GROUP, HALF_TOPIC, 0, half_offset)

    after = broker.restarted()

    assert len(after.messages) == 1
    after.end(producer, copies[chosen], COMMIT)
    assert after.delivered() == ["A"]
    for late in copies:
        assert "already" in refused(after, producer, late, COMMIT).remark
    assert len(after.restarted().messages) == 0


def test_a_copy_is_found_by_the_offset_of_the_first_one() -> None:
    broker, producer = TransactionBroker(), Producer()
    first, copy = left_by_apache(broker, producer)

    after = broker.restarted()

    assert after.messages.table.copies.find(first.commit_log_offset) == (after.messages.table.find(copy.commit_log_offset), 0)


def test_a_decision_that_apache_asked_for_about_our_moved_copy_counts() -> None:
    broker, producer = TransactionBroker(), Producer()
    broker.send(producer, "OLD")
    for number in range(9):
        broker.end(producer, broker.send(producer, str(number)), COMMIT)
    broker.tick()
    moved = broker.records(HALF_TOPIC)[-1]
    broker.consumer_offsets.commit(TRANSACTION_GROUP, HALF_TOPIC, 0, moved.queue_offset)

    after = broker.restarted()
    after.end(producer, Appended(moved.commit_log_offset, moved.queue_offset, 0), COMMIT)

    assert after.delivered()[-1] == "OLD"
    assert len(after.messages) == 0


def test_a_half_message_that_is_not_the_one_expected_is_not_delivered(broker: TransactionBroker, producer: Producer) -> None:
    half = broker.send(producer, "A")
    other = broker.send(producer, "B")
    transaction = pending(broker.messages.table, half.commit_log_offset)
    transaction.stored_at = other.commit_log_offset

    assert "cannot be read" in refused(broker, producer, half, COMMIT).remark
    assert broker.delivered() == []


def test_consumer_offsets_are_noted_when_what_they_rest_on_is_on_disk(broker: TransactionBroker, producer: Producer) -> None:
    first = broker.send(producer, "A")
    second = broker.send(producer, "B")
    broker.end(producer, second, COMMIT)
    broker.notes.note_offsets()

    def noted() -> tuple[int | None, int | None]:
        offsets = broker.consumer_offsets
        return offsets.get(TRANSACTION_GROUP, HALF_TOPIC, 0), offsets.get(TRANSACTION_GROUP, OP_TOPIC, 0)

    assert noted() == (0, 0)
    broker.end(producer, first, COMMIT, flush=False)
    broker.notes.note_offsets()
    assert noted() == (0, 0)
    broker.flush()
    broker.notes.note_offsets()
    assert noted() == (2, 2)


def test_offsets_that_rest_on_what_was_lost_are_never_noted(broker: TransactionBroker, producer: Producer) -> None:
    first = broker.send(producer, "A")
    broker.end(producer, first, ROLLBACK, flush=False)
    broker.notes.note_offsets()
    broker.disk.is_full = True
    broker.flush()
    broker.disk.is_full = False
    for number in range(5):
        broker.send(producer, str(number))

    broker.notes.note_offsets()

    assert broker.consumer_offsets.get(TRANSACTION_GROUP, HALF_TOPIC, 0) == 0


def test_an_offset_beyond_the_queue_is_not_believed(broker: TransactionBroker, producer: Producer) -> None:
    half = broker.send(producer, "A")
    broker.consumer_offsets.commit(TRANSACTION_GROUP, HALF_TOPIC, 0, 99)

    after = broker.restarted()

    assert [t.commit_log_offset for t in after.messages] == [half.commit_log_offset]


def test_a_message_larger_than_is_allowed_by_now_is_committed(broker: TransactionBroker, producer: Producer) -> None:
    half = broker.send(producer, "A")
    broker.store._max_message_size = 1
    broker.end(producer, half, COMMIT)
    assert broker.delivered() == ["A"]
