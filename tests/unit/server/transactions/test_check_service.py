import asyncio
import threading
from dataclasses import replace
from typing import Any

import pytest

from rocketmq_broker.message import properties as props
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.server.schedule.expiry_clock import BELIEVED_AFTER_MS
from rocketmq_broker.store.log.segments import Segments
from rocketmq_broker.transaction.checking.check_policy import CheckPolicy
from rocketmq_broker.transaction.pending_transaction import PendingTransaction
from tests.unit.server.transaction_broker import (
    DISCARD_TOPIC,
    HALF_TOPIC,
    OP_TOPIC,
    POLICY,
    TRANSACTION_GROUP,
    CountsFile,
    Producer,
    TransactionBroker,
)
from tests.unit.transaction.records import pending
from tests.waiting import until

COMMIT, ROLLBACK, UNKNOWN = 8, 12, 0


def answer(broker: TransactionBroker, producer: Producer, state: int = UNKNOWN) -> None:
    """Ends the transaction of the producer's latest check-back with `state`."""
    broker.end(producer, producer.checks[-1], state, from_check=True, is_oneway=True)


def patient(policy: CheckPolicy = POLICY, *, sent: int = 1) -> tuple[TransactionBroker, Producer]:
    """Returns a broker that awaits each answer for a minute, and a producer that is online and has sent transactions 0, 1, ..."""
    broker, producer = TransactionBroker(policy=policy, answer_timeout_ms=60_000), Producer()
    broker.online(producer)
    for number in range(sent):
        broker.send(producer, str(number))
    return broker, producer


def damage(broker: TransactionBroker, body: bytes) -> None:
    segment = next(path for path in broker.files.paths if path.parent.name == "commitlog")
    broker.files.write(broker.files.open(segment), b"\xff", broker.files.content(segment).index(body))


def test_the_first_check_comes_when_the_timeout_is_over(broker: TransactionBroker, producer: Producer) -> None:
    half = broker.send(producer, "A", b"one order")

    broker.tick(999)
    assert producer.checks == []
    broker.tick(1)

    (check,) = producer.checks
    assert (check.transaction_id, check.times, check.topic, check.body) == ("A", 1, "orders", b"one order")
    assert (check.commit_log_offset, check.queue_offset) == (half.commit_log_offset, half.queue_offset)


def test_the_immunity_counts_instead_of_the_timeout_and_uses_no_check_up(broker: TransactionBroker, producer: Producer) -> None:
    broker.send(producer, "A", CHECK_IMMUNITY_TIME_IN_SECONDS="4")

    for _ in range(3):
        broker.tick(1000)
    assert producer.checks == []
    broker.tick(1000)

    assert [check.times for check in producer.checks] == [1]
    assert len(broker.records(HALF_TOPIC)) == 1


def test_checks_are_numbered_and_then_the_message_is_discarded(broker: TransactionBroker, producer: Producer) -> None:
    broker.send(producer, "A")

    broker.tick(1000)
    for _ in range(3):
        broker.tick(2000)

    assert [check.times for check in producer.checks] == [1, 2, 3]
    (gone,) = broker.records(DISCARD_TOPIC)
    assert gone.get_property(props.REAL_TOPIC) == "orders"
    assert gone.get_property(props.TRANSACTION_CHECK_TIMES) == "3"
    assert broker.topics.get(DISCARD_TOPIC) is not None
    assert (broker.messages.counts.discards, broker.messages.counts.skips) == (1, 0)
    broker.tick(60_000)
    assert len(producer.checks) == 3
    assert len(broker.records(DISCARD_TOPIC)) == 1


def test_a_check_rewrites_nothing(broker: TransactionBroker, producer: Producer) -> None:
    broker.send(producer, "A")
    before = broker.store.written_position

    broker.tick(1000)
    broker.tick(2000)

    assert broker.store.written_position == before


def test_the_answer_to_a_check_decides_once(broker: TransactionBroker, producer: Producer) -> None:
    half = broker.send(producer, "A")
    broker.tick(1000)
    broker.tick(2000)

    broker.end(producer, producer.checks[0], COMMIT, from_check=True)
    for late in (producer.checks[1], half):
        with pytest.raises(Exception, match="already"):
            broker.end(producer, late, COMMIT, from_check=True)

    assert broker.delivered() == ["A"]
    assert broker.records("orders", 2)[0].get_property(props.TRANSACTION_CHECK_TIMES) == "2"
    broker.tick(60_000)
    assert len(producer.checks) == 2


def test_with_no_producer_online_no_check_is_used_up(broker: TransactionBroker, producer: Producer) -> None:
    broker.send(producer, "A")
    broker.online()
    for _ in range(10):
        broker.tick(2000)
    assert broker.discarded() == []

    broker.online(producer)
    broker.tick(2000)

    assert [check.times for check in producer.checks] == [1]


def test_nothing_is_read_for_a_group_that_is_not_online(broker: TransactionBroker, producer: Producer) -> None:
    for number in range(10):
        broker.send(producer, str(number))
    broker.online()
    before = broker.files.reads

    broker.tick(2000)

    assert broker.files.reads == before
    assert broker.messages.counts.checks_without_producer == 10


def test_the_producer_that_sent_the_message_is_asked_first(broker: TransactionBroker) -> None:
    producers = [Producer(f"127.0.0.1:{port}") for port in (5001, 5002, 5003)]
    broker.online(*producers)
    for producer in producers:
        broker.send(producer, producer.peer)

    broker.tick(1000)

    for producer in producers:
        assert [check.transaction_id for check in producer.checks] == [producer.peer]


@pytest.mark.parametrize(("is_answered", "asked"), [(True, ([1, 2], [])), (False, ([1], [2]))])
def test_the_sender_is_asked_again_and_others_of_the_group_if_it_owes_an_answer(
    broker: TransactionBroker, is_answered: bool, asked: tuple[list[int], list[int]]
) -> None:
    sender, other = Producer("127.0.0.1:5001"), Producer("127.0.0.1:5002")
    broker.online(sender, other)
    broker.send(sender, "A")
    broker.tick(1000)
    if is_answered:
        answer(broker, sender)

    broker.tick(2000)

    assert ([check.times for check in sender.checks], [check.times for check in other.checks]) == asked


@pytest.mark.parametrize(
    ("others", "asked"),
    [(("10.0.0.1:5002", "10.0.0.1:5003"), [2, 2]), (("10.0.0.2:5001", "10.0.0.3:5001", "10.0.0.1:5002"), [0, 0, 4])],
    ids=["in turn", "one on its machine first"],
)
def test_when_the_sender_has_left_the_others_are_asked(
    broker: TransactionBroker, others: tuple[str, ...], asked: list[int]
) -> None:
    sender, there = Producer("10.0.0.1:5001"), [Producer(peer) for peer in others]
    for number in range(4):
        broker.send(sender, str(number))
    broker.online(*there)

    broker.tick(1000)

    assert [len(other.checks) for other in there] == asked


def test_what_was_given_up_is_written_though_moving_another_fails(
    broker: TransactionBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    oldest = broker.send(Producer(), "A").commit_log_offset
    pending(broker.messages.table, broker.send(Producer(), "B").commit_log_offset).checks = broker.policy.check_max
    for number in range(broker.policy.hold_back_max):
        broker.end(Producer(), broker.send(Producer(), str(number)), ROLLBACK)
    broker._has_appended = False
    broker.now_ms += 1000
    read = Segments.read

    def read_others(segments: Segments, position: int, length: int) -> bytes:
        return bytes(1 // 0) if position == oldest else read(segments, position, length)

    monkeypatch.setattr(Segments, "read", read_others)
    with pytest.raises(ZeroDivisionError):
        broker.check_service.handle_due(broker.now_ms)

    assert broker._has_appended


def test_a_connection_that_breaks_while_it_is_asked_is_passed_over(broker: TransactionBroker) -> None:
    class Breaking(Producer):
        def invoke_oneway(self, code: int, header: object, body: bytes) -> None:  # type: ignore[override]
            self.is_writable = False
            Producer.invoke_oneway(self, code, header, body)  # type: ignore[arg-type]

    breaking, other = Breaking("127.0.0.1:5001"), Producer("127.0.0.1:5002")
    broker.online(breaking, other)
    broker.send(breaking, "A")

    broker.tick(1000)

    assert [check.times for check in other.checks] == [1]


def test_a_check_that_reached_nobody_does_not_count(broker: TransactionBroker, producer: Producer) -> None:
    broker.send(producer, "A")
    producer.is_writable = False
    for _ in range(10):
        broker.tick(2000)
    assert (producer.checks, broker.discarded()) == ([], [])
    assert broker.messages.counts.checks_held_back == 10
    assert broker.messages.counts.checks_without_producer == 0

    producer.is_writable = True
    broker.tick(2000)

    assert [check.times for check in producer.checks] == [1]


def test_a_producer_is_not_flooded_and_what_is_held_back_uses_no_check_up() -> None:
    broker, producer = TransactionBroker(in_flight_limit=2), Producer()
    broker.online(producer)
    for number in range(5):
        broker.send(producer, str(number))

    broker.tick(1000)
    assert [check.transaction_id for check in producer.checks] == ["0", "1"]
    broker.end(producer, producer.checks[0], COMMIT, from_check=True)
    broker.tick(1000)
    assert [check.transaction_id for check in producer.checks] == ["0", "1", "2"]
    assert {check.times for check in producer.checks} == {1}
    assert broker.messages.counts.checks_held_back > 0


def test_no_check_is_sent_or_counted_while_the_only_producer_owes_the_answer() -> None:
    broker, producer = patient()

    for _ in range(25):
        broker.tick(1000)
    assert {check.times for check in producer.checks} == {1}
    assert broker.messages.counts.checks_sent == 1
    answer(broker, producer, COMMIT)

    assert broker.delivered() == ["0"]
    assert broker.discarded() == []
    assert broker.messages.counts.checks_held_back > 20


def test_the_last_answer_is_awaited_before_a_message_is_discarded() -> None:
    broker, producer = patient()
    for _ in range(2):
        broker.tick(2000)
        answer(broker, producer)
    broker.tick(2000)
    assert [check.times for check in producer.checks] == [1, 2, 3]

    broker.tick(59_000)
    assert broker.discarded() == []
    broker.tick(2000)
    assert broker.discarded() == ["0"]


def test_the_next_check_comes_an_interval_after_the_last_one_once_its_answer_is_there() -> None:
    broker, producer = patient()
    broker.tick(1000)
    broker.tick(5_000)
    answer(broker, producer)

    broker.tick(999)
    assert len(producer.checks) == 1
    broker.tick(1)
    assert [check.times for check in producer.checks] == [1, 2]


def test_a_check_that_times_out_is_sent_and_counted_again() -> None:
    broker, producer = patient()

    for _ in range(3 * 60):
        broker.tick(1000)
    assert [check.times for check in producer.checks] == [1] * 4 + [2] * 4 + [3] * 4
    assert broker.messages.counts.checks_sent == 3
    broker.tick(61_000)
    assert broker.discarded() == ["0"]


def test_an_answer_that_is_lost_is_asked_for_again_and_the_check_counts_once() -> None:
    broker, producer = patient()
    broker.tick(1000)
    assert [check.times for check in producer.checks] == [1]

    broker.tick(5_999)
    assert len(producer.checks) == 1
    broker.tick(1)

    assert [check.times for check in producer.checks] == [1, 1]
    answer(broker, producer, COMMIT)
    assert broker.delivered() == ["0"]
    assert broker.records("orders", 2)[0].get_property(props.TRANSACTION_CHECK_TIMES) == "1"
    assert broker.messages.counts.checks_sent == 1


def test_a_check_is_repeated_after_twice_as_long_each_time_up_to_the_interval() -> None:
    broker, producer = patient(CheckPolicy())
    asked_s = []
    for second in range(66):
        broker.tick(1000)
        asked_s += [second] * (len(producer.checks) - len(asked_s))

    assert asked_s == [5, 5 + 6, 5 + 18, 5 + 42, 5 + 60]
    assert [check.times for check in producer.checks] == [1, 1, 1, 1, 2]


def test_another_producer_is_asked_in_place_of_one_that_does_not_answer_and_the_check_counts_once() -> None:
    broker = TransactionBroker(policy=CheckPolicy(), answer_timeout_ms=60_000)
    silent, other = Producer("127.0.0.1:5001"), Producer("127.0.0.1:5002")
    broker.online(silent, other)
    broker.send(silent, "A")

    broker.tick(6_000)
    broker.tick(6_000)

    assert [len(silent.checks), len(other.checks)] == [1, 1]
    assert [check.times for check in other.checks] == [1]
    broker.leave(other)
    assert broker.messages.counts.checks_given_back == 0
    broker.leave(silent)
    assert broker.messages.counts.checks_given_back == 1


def test_a_late_answer_and_that_to_its_repetition_are_one_outcome() -> None:
    broker, producer = patient(CheckPolicy())
    broker.tick(6_000)
    broker.tick(6_000)

    broker.end(producer, producer.checks[0], COMMIT, from_check=True)
    with pytest.raises(Exception, match="already"):
        broker.end(producer, producer.checks[1], COMMIT, from_check=True)

    assert broker.delivered() == ["0"]
    broker.tick(60_000)
    assert len(producer.checks) == 2


def test_a_producer_that_does_not_know_yet_is_asked_again_after_the_interval_and_not_before() -> None:
    broker, producer = patient(CheckPolicy())
    broker.tick(6_000)
    answer(broker, producer)

    for _ in range(59):
        broker.tick(1000)
    assert len(producer.checks) == 1
    broker.tick(1000)
    assert [check.times for check in producer.checks] == [1, 2]


def test_of_the_checks_that_a_hanging_producer_owes_only_the_oldest_is_repeated() -> None:
    broker, hanging = patient(CheckPolicy(), sent=1000)
    broker.tick(6_000)
    assert len(hanging.checks) == 256

    for _ in range(59):
        broker.tick(1000)
    assert [check.transaction_id for check in hanging.checks[256:]] == ["0", "0", "0"]


def test_once_a_producer_answers_all_that_it_owes_are_asked_again() -> None:
    broker, producer = patient(CheckPolicy(), sent=5)
    broker.tick(6_000)
    broker.tick(6_000)
    broker.end(producer, producer.checks[5], COMMIT, from_check=True)

    broker.tick(6_000)

    assert sorted(check.transaction_id for check in producer.checks[6:]) == ["1", "2", "3", "4"]


def test_a_clock_that_is_set_repeats_nothing_sooner_or_later() -> None:
    broker, producer = patient(CheckPolicy())
    broker.tick(6_000)
    broker.step_clock(-1_000_000)
    broker.tick(5_999)
    assert len(producer.checks) == 1
    broker.tick(1)
    assert len(producer.checks) == 2


def test_a_producer_that_hangs_is_asked_about_one_transaction_each_time_out() -> None:
    broker, producer = patient(sent=10)

    for _ in range(3 * 60):
        broker.tick(1000)

    assert broker.messages.counts.checks_sent == 10 + 2
    assert len(producer.checks) == (10 + 2) + 3 * 3, "of those that it owes, the oldest alone is repeated"
    assert broker.discarded() == []


def test_a_producer_that_answers_is_asked_before_one_that_hangs() -> None:
    broker, hanging, other = TransactionBroker(answer_timeout_ms=2000), Producer("127.0.0.1:5001"), Producer("127.0.0.1:5002")
    broker.online(hanging, other)
    broker.send(hanging, "A")
    broker.tick(1000)
    broker.tick(2000)
    answer(broker, other)

    broker.tick(2000)

    assert [len(hanging.checks), len(other.checks)] == [1, 2]


def test_checks_that_a_producer_left_unanswered_count_no_more(broker: TransactionBroker, producer: Producer) -> None:
    broker.send(producer, "A")

    for _ in range(10):
        broker.tick(2000)
        broker.leave(producer)
        broker.online(producer)
    broker.tick(2000)

    assert {check.times for check in producer.checks} == {1}
    assert broker.discarded() == []
    assert broker.messages.counts.checks_given_back == 10


def test_a_check_that_was_answered_still_counts_when_its_producer_leaves(broker: TransactionBroker, producer: Producer) -> None:
    broker.send(producer, "A")
    broker.tick(1000)
    answer(broker, producer)
    broker.leave(producer)
    broker.online(producer)

    broker.tick(2000)

    assert [check.times for check in producer.checks] == [1, 2]


def test_a_check_for_a_transaction_that_was_decided_meanwhile_is_given_back_to_nobody(
    broker: TransactionBroker, producer: Producer
) -> None:
    half = broker.send(producer, "A")
    broker.tick(1000)
    broker.end(producer, half, COMMIT)

    broker.leave(producer)

    assert broker.messages.counts.checks_given_back == 0


def test_one_bad_record_stops_nothing(broker: TransactionBroker, producer: Producer, caplog: pytest.LogCaptureFixture) -> None:
    broker.send(producer, "A")
    bad = broker.send(producer, "BAD", b"body of the bad one")
    broker.send(producer, "C")
    damage(broker, b"body of the bad one")

    for elapsed_ms in (1000, 2000, 2000):
        broker.tick(elapsed_ms)
        for check in producer.checks[-2:]:
            broker.end(producer, check, UNKNOWN, from_check=True, is_oneway=True)

    assert sorted(check.transaction_id for check in producer.checks) == ["A"] * 3 + ["C"] * 3
    assert broker.messages.counts.bad_records == 3
    assert len([record for record in caplog.records if f"at {bad.commit_log_offset} " in record.message]) == 1


def test_a_damaged_half_message_whose_time_is_over_is_closed(broker: TransactionBroker, producer: Producer) -> None:
    half = broker.send(producer, "A", b"body of the bad one")
    transaction = pending(broker.messages.table, half.commit_log_offset)
    transaction.checks = POLICY.check_max
    damage(broker, b"body of the bad one")

    broker.tick(1000)

    assert len(broker.messages) == 0
    assert broker.discarded() == []


def test_a_damaged_half_message_does_not_hold_the_queue_back(broker: TransactionBroker, producer: Producer) -> None:
    broker.send(producer, "BAD", b"body of the bad one")
    damage(broker, b"body of the bad one")
    for number in range(9):
        broker.end(producer, broker.send(producer, str(number)), COMMIT)

    broker.tick()

    assert len(broker.messages) == 0
    assert broker.messages.table.advance_offsets().half == 10


def test_nothing_is_moved_while_the_store_refuses_writes(broker: TransactionBroker, producer: Producer) -> None:
    broker.send(producer, "OLD")
    for number in range(9):
        broker.end(producer, broker.send(producer, str(number)), COMMIT)
    broker.store.refuse_writes("read-only")

    broker.tick()

    assert broker.messages.counts.moves == 0
    assert len(broker.messages) == 1


def test_a_half_message_that_expired_from_the_commit_log_is_closed(broker: TransactionBroker, producer: Producer) -> None:
    broker.send(producer, "A")
    lost = next(iter(broker.messages))
    lost.stored_at = -1

    broker.tick(1000)

    assert len(broker.messages) == 0
    assert [op.get_property("REASON") for op in broker.records(OP_TOPIC)] == ["the half message cannot be read"]


def test_a_half_message_that_is_not_written_yet_is_checked_later(broker: TransactionBroker, producer: Producer) -> None:
    broker.send(producer, "A", flush=False, CHECK_IMMUNITY_TIME_IN_SECONDS="0")

    broker.tick()
    assert producer.checks == []
    broker.tick(1000)

    assert [check.times for check in producer.checks] == [1]


@pytest.fixture
def forgetful() -> TransactionBroker:
    """Creates a broker that discards half messages that are older than ten seconds."""
    return TransactionBroker(policy=replace(POLICY, file_reserved_ms=10_000))


def test_a_message_older_than_the_store_keeps_is_given_up_if_nobody_can_be_asked(forgetful: TransactionBroker) -> None:
    forgetful.send(Producer(), "A")
    forgetful.tick(10_000)
    assert forgetful.discarded() == []

    forgetful.tick(2000)

    assert forgetful.discarded() == ["A"]
    assert forgetful.messages.counts.skips == 1


def test_a_message_that_grew_old_while_nobody_could_be_asked_gets_one_check(forgetful: TransactionBroker) -> None:
    producer = Producer()
    forgetful.send(producer, "A")
    forgetful.send(producer, "B")
    forgetful.online(producer)

    forgetful.tick(11_000)
    assert [check.transaction_id for check in producer.checks] == ["A", "B"]
    forgetful.end(producer, producer.checks[0], COMMIT, from_check=True)
    forgetful.tick(2000)

    assert (forgetful.delivered(), forgetful.discarded()) == (["A"], ["B"])


def test_after_a_long_rest_of_the_broker_producers_have_time_to_come_back(forgetful: TransactionBroker) -> None:
    producer = Producer()
    forgetful.send(producer, "A")
    after = forgetful.restarted(now_ms=forgetful.now_ms + 1_000_000)

    after.tick()
    assert after.discarded() == []
    after.online(producer)
    after.tick(2000)

    assert [check.transaction_id for check in producer.checks] == ["A"]


FOUR_DAYS_MS = 4 * 24 * 3_600_000


@pytest.mark.parametrize("is_online", [True, False])
@pytest.mark.parametrize("step_ms", [FOUR_DAYS_MS, -FOUR_DAYS_MS])
def test_a_clock_set_wrongly_for_a_while_gives_nothing_up_and_uses_up_no_check(is_online: bool, step_ms: int) -> None:
    broker = TransactionBroker(now_ms=10 * FOUR_DAYS_MS, policy=replace(POLICY, file_reserved_ms=259_200_000))
    producer = Producer()
    half = broker.send(producer, "A")
    broker.online(*([producer] if is_online else []))

    broker.step_clock(step_ms)
    broker.tick(400)
    broker.step_clock(-step_ms)
    broker.tick(400)
    assert producer.checks == []
    assert broker.discarded() == []

    broker.online(producer)
    broker.tick(200)
    assert [check.times for check in producer.checks] == [1]
    broker.end(producer, half, COMMIT)
    assert broker.delivered() == ["A"]


@pytest.mark.parametrize("step_ms", [FOUR_DAYS_MS, -FOUR_DAYS_MS])
def test_a_producer_that_is_looking_while_the_clock_is_set_is_not_asked_again_and_may_answer(step_ms: int) -> None:
    broker = TransactionBroker(now_ms=10 * FOUR_DAYS_MS, policy=replace(POLICY, check_max=1), answer_timeout_ms=5000)
    producer = Producer()
    broker.send(producer, "A")
    broker.online(producer)
    broker.tick(1000)

    broker.step_clock(step_ms)
    broker.tick(4999)
    assert [check.times for check in producer.checks] == [1]
    assert broker.discarded() == []

    broker.end(producer, producer.checks[0], COMMIT, from_check=True)
    assert broker.delivered() == ["A"]


@pytest.mark.parametrize("is_online", [True, False])
def test_a_broker_that_starts_with_a_clock_four_days_ahead_gives_nothing_up(is_online: bool) -> None:
    before = TransactionBroker(now_ms=10 * FOUR_DAYS_MS, policy=replace(POLICY, file_reserved_ms=259_200_000))
    producer = Producer()
    half = before.send(producer, "A")
    after = before.restarted(now_ms=before.now_ms + FOUR_DAYS_MS)
    after.online(*([producer] if is_online else []))

    for _ in range(2):
        after.tick(1000)
    assert after.discarded() == []
    after.step_clock(-FOUR_DAYS_MS)
    after.end(producer, half, COMMIT)
    assert after.delivered() == ["A"]


def test_after_an_hour_a_clock_set_forward_is_believed() -> None:
    policy = replace(POLICY, check_interval_ms=60_000, check_max=1000, file_reserved_ms=259_200_000)
    before, producer = TransactionBroker(now_ms=10 * FOUR_DAYS_MS, policy=policy), Producer()
    before.send(producer, "A")
    after = before.restarted(now_ms=before.now_ms + FOUR_DAYS_MS)
    after.tick(60_000)  # it looks at the clock
    after.tick(BELIEVED_AFTER_MS - 1)
    assert after.discarded() == []
    after.tick(60_000)
    assert after.discarded() == ["A"]


def test_a_discard_that_cannot_be_written_is_tried_again(broker: TransactionBroker, producer: Producer) -> None:
    broker.send(producer, "A")
    for elapsed_ms in (1000, 2000, 2000):
        broker.tick(elapsed_ms)
    broker.disk.is_full = True
    broker.tick(2000)
    assert broker.discarded() == []
    broker.disk.is_full = False

    broker.tick(2000)

    assert broker.discarded() == ["A"]


def test_check_counts_survive_a_restart(broker: TransactionBroker, producer: Producer) -> None:
    broker.send(producer, "A")
    for elapsed_ms in (1000, 2000):
        broker.tick(elapsed_ms)
        answer(broker, producer)
    broker.notes.finish()

    after = broker.restarted()
    after.online(producer)
    after.tick(2000)
    after.tick(2000)

    assert [check.times for check in producer.checks] == [1, 2, 3]
    assert after.discarded() == ["A"]


def test_a_check_that_was_under_way_when_the_broker_ended_does_not_count(broker: TransactionBroker, producer: Producer) -> None:
    broker.send(producer, "A")
    for _ in range(10):
        broker.online(producer)
        broker.tick(2000)
        broker.notes.finish()
        broker = broker.restarted()

    assert {check.times for check in producer.checks} == {1}
    assert broker.discarded() == []


async def test_the_last_check_counts_are_not_overtaken_by_a_thread_that_was_left_behind() -> None:
    class SlowFile(CountsFile):
        written: list[dict[str, int]] = []

        def write(self, value: dict[str, Any]) -> None:
            is_first = not began.is_set()
            began.set()
            if is_first:
                goes_on.wait(0.2)
            self.written.append(value["checks"])

    began, goes_on, file = threading.Event(), threading.Event(), SlowFile()
    broker, producer = TransactionBroker(counts_file=file), Producer()
    broker.online(producer)
    half = broker.send(producer, "A")
    broker.tick(1000)
    answer(broker, producer)
    keeping = asyncio.create_task(broker.notes.keep())
    await asyncio.to_thread(began.wait, 5)
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    broker.tick(2000)
    answer(broker, producer)

    broker.notes.finish()
    goes_on.set()
    await asyncio.sleep(0.05)

    assert file.written[-1] == {str(half.commit_log_offset): 2}


def test_an_old_half_message_is_moved_before_it_holds_the_queue_back(broker: TransactionBroker, producer: Producer) -> None:
    old = broker.send(producer, "OLD")
    for number in range(9):
        broker.end(producer, broker.send(producer, str(number)), COMMIT)

    broker.tick(1000)
    broker.notes.note_offsets()

    halves = broker.records(HALF_TOPIC)
    assert len(halves) == 11
    assert halves[-1].get_property(props.TRANSACTION_PREPARED_QUEUE_OFFSET) == "0"
    assert broker.consumer_offsets.get(TRANSACTION_GROUP, HALF_TOPIC, 0) == 10
    assert broker.consumer_offsets.get(TRANSACTION_GROUP, OP_TOPIC, 0) == 10
    after = broker.restarted()
    after.online(producer)
    after.end(producer, old, COMMIT)
    assert after.delivered()[-1] == "OLD"
    assert after.records("orders", 2)[-1].prepared_transaction_offset == old.commit_log_offset


def test_a_moved_message_does_not_carry_a_check_that_nobody_answered(broker: TransactionBroker, producer: Producer) -> None:
    broker.send(producer, "OLD")
    broker.tick(1000)
    for number in range(9):
        broker.end(producer, broker.send(producer, str(number)), COMMIT)
    broker.tick()
    assert broker.messages.counts.moves == 1

    broker.leave(producer)
    after = broker.restarted()

    assert [transaction.checks for transaction in after.messages] == [0]


def test_the_check_of_a_moved_message_refers_to_its_first_offset(broker: TransactionBroker, producer: Producer) -> None:
    old = broker.send(producer, "OLD", CHECK_IMMUNITY_TIME_IN_SECONDS="3")
    for number in range(9):
        broker.end(producer, broker.send(producer, str(number)), COMMIT)
    broker.tick(1000)
    broker.tick(2000)

    (check,) = producer.checks

    assert (check.commit_log_offset, check.queue_offset) == (old.commit_log_offset, old.queue_offset)
    broker.end(producer, check, COMMIT)
    assert broker.delivered()[-1] == "OLD"
    assert len(broker.restarted().messages) == 0


def test_a_moved_message_is_moved_no_more_until_it_is_far_behind_again(broker: TransactionBroker, producer: Producer) -> None:
    broker.send(producer, "OLD")
    for number in range(9):
        broker.end(producer, broker.send(producer, str(number)), COMMIT)
    for _ in range(5):
        broker.tick(100)

    assert broker.messages.counts.moves == 1


@pytest.mark.slow
def test_100_000_pending_transactions_cost_nothing_until_they_are_due() -> None:
    broker, producer = TransactionBroker(policy=replace(POLICY, transaction_timeout_ms=60_000)), Producer()
    broker.online(producer)
    template = broker.send(producer, "A")
    first = next(iter(broker.messages))
    for number in range(1, 100_000):
        offset = template.commit_log_offset + number
        broker.messages.table.add(
            PendingTransaction(
                offset, first.queue_offset, offset, number, first.producer_group, first.topic, first.queue_id, first.tags_code,
                first.begun_ms, first.due_ms,
            )
        )  # fmt: skip
    reads, writes = broker.files.reads, broker.files.writes

    for _ in range(50):
        broker.now_ms += 1000
        broker.check_service.handle_due(broker.now_ms)
        broker.notes.note_offsets()

    assert (broker.files.reads, broker.files.writes) == (reads, writes)
    assert producer.checks == []


def test_without_pending_transactions_nothing_is_looked_at_until_one_comes(broker: TransactionBroker, producer: Producer) -> None:
    assert broker.check_service.handle_due_now() is None

    broker.send(producer, "A")

    assert broker.check_service.handle_due_now() == 1.0
    broker.now_ms += 600
    assert broker.check_service.handle_due_now() == pytest.approx(0.4)


def test_an_answered_check_asks_for_no_look_before_the_next_one_is_due() -> None:
    broker, producer = patient(CheckPolicy())
    broker.tick(6_000)
    assert broker.in_flight.next_repetition_ms() == broker.now_ms + 6_000

    answer(broker, producer)

    assert broker.in_flight.next_repetition_ms() is None


async def test_a_half_message_that_is_due_sooner_than_all_others_wakes_the_timer(producer: Producer) -> None:
    broker = TransactionBroker(max_sleep_s=3600)
    broker.online(producer)
    tasks = Tasks()
    tasks.when_due("check-back", broker.check_service.handle_due_now, broker.check_service.alarm, rest_s=0)
    await asyncio.sleep(0)
    broker.send(producer, "LATE", CHECK_IMMUNITY_TIME_IN_SECONDS="3000")
    await asyncio.sleep(0.01)

    broker.send(producer, "SOON", CHECK_IMMUNITY_TIME_IN_SECONDS="0")

    await until(lambda: bool(producer.checks))
    assert [check.transaction_id for check in producer.checks] == ["SOON"]
    await tasks.stop()


def test_an_answered_check_is_acknowledged_like_any_decision(broker: TransactionBroker, producer: Producer) -> None:
    broker.send(producer, "A")
    broker.tick(1000)

    broker.end(producer, producer.checks[0], ROLLBACK, from_check=True)

    assert [answer.code for answer in producer.answers] == [ResponseCode.SUCCESS]
    assert broker.in_flight.count(producer.connection) == 0
