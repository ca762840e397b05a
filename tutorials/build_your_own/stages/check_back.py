"""Stage 9: the broker sends a check-back for a missing decision."""

import time

from tutorials.build_your_own.tester.connection import Connection
from tutorials.build_your_own.tester.frames import CODES, Frame
from tutorials.build_your_own.tester.layout import Record, read_record, shown
from tutorials.build_your_own.tester.requests import (
    COMMIT,
    ROLLBACK,
    UNKNOWN,
    Half,
    answer_check,
    heart_beat,
    pull_all,
    pull_until,
    send_half,
)
from tutorials.build_your_own.tester.trial import Trial, check

TOPIC = "orders"
TIMEOUT_MS = 300
_CLOCK_SLACK_MS = 20
"""The tolerance in milliseconds for comparing times, because the clocks have a resolution of one millisecond."""
_OURS = "broker/rocketmq_broker/server/transactions/check_requests.py"
_APACHE = "AbstractTransactionalMessageCheckListener.sendCheckMessage"


def play(trial: Trial) -> None:
    """Runs the checks of this stage. Raises ClaimFailed if a check fails."""
    trial.start()
    producer, stranger = trial.connect("producer"), trial.connect("stranger")
    heart_beat(producer)
    heart_beat(stranger, "another_group")
    asked, half = _asks_in_time(trial, producer)
    _asks_about_the_message(trial, asked, half)
    _asks_again(trial, producer, asked, half)
    _believes_the_answer(trial, producer)
    with trial.claim(
        "Only producers of the group that sent the half message are asked",
        hint="A heartbeat's producerDataSet says which groups live on which connection. PGROUP says which group to ask.",
        ours="broker/rocketmq_broker/server/clients/producer_groups.py",
        apache="ProducerManager.getAvailableChannel",
    ):
        stranger.poll()
        check(not stranger.inbox, "nothing on the connection of another group", f"{len(stranger.inbox)} frames")


def next_check(connection: Connection, transaction_id: str) -> tuple[Frame, Record]:
    """Waits for the next check-back about a transaction, and returns its frame and the record in its body. Raises Failed."""

    def is_it(frame: Frame) -> bool:
        return frame.code == CODES["CHECK_TRANSACTION_STATE"] and transaction_id.encode() in frame.body

    frame = connection.take(is_it, f"CHECK_TRANSACTION_STATE (39) about transaction {transaction_id}")
    return frame, read_record(frame.body, 0, "the body of CHECK_TRANSACTION_STATE")


def check_times(record: Record) -> int:
    """Returns the number of the check-back from the record's property. Raises Failed."""
    times = record.properties.get("TRANSACTION_CHECK_TIMES", "")
    check(times.isdecimal(), "the property TRANSACTION_CHECK_TIMES: the number of this check-back, counted from 1", f'"{times}"')
    return int(times)


def _asks_in_time(trial: Trial, producer: Connection) -> tuple[tuple[Frame, Record], Half]:
    with trial.claim(
        f"A half message that nobody decides is asked about, not before transactionTimeOut ({TIMEOUT_MS} ms) is over",
        hint="Look at the pending half messages every transactionCheckInterval, and ask about those that are older than "
        "transactionTimeOut. A producer may still be running its local transaction.",
        ours="broker/rocketmq_broker/transaction/checking/check_policy.py",
        apache="TransactionalMessageServiceImpl.check",
    ):
        began = time.monotonic()
        half = send_half(producer, TOPIC, b"order 1", "T-1")
        asked = next_check(producer, "T-1")
        age_ms = (time.monotonic() - began) * 1000
        check(age_ms >= TIMEOUT_MS - _CLOCK_SLACK_MS, f"no check-back in the first {TIMEOUT_MS} ms", f"one after {age_ms:.0f} ms")
        return asked, half


def _asks_about_the_message(trial: Trial, asked: tuple[Frame, Record], half: Half) -> None:
    with trial.claim(
        "The check-back carries the message as its producer knows it, and names the offsets for the answer",
        hint="The body is one record, its topic and queue id those of REAL_TOPIC and REAL_QID. extFields: tranStateTableOffset "
        "is the half message's queue offset, commitLogOffset where it lies, msgId and transactionId are UNIQ_KEY.",
        ours="broker/rocketmq_broker/transaction/checking/check_message.py",
        apache="Broker2Client.checkProducerTransactionState",
    ):
        frame, record = asked
        check(not frame.is_answer, "a request: the lowest bit of flag is 0", f"flag {frame.flag}")
        check(record.topic == TOPIC, f"a record of topic {TOPIC}", f"one of {record.topic}")
        check(record.body == b"order 1", 'body "order 1"', shown(record.body))
        check(record.number("QUEUEID") == 0, "QUEUEID 0", str(record.number("QUEUEID")))
        check(check_times(record) == 1, "TRANSACTION_CHECK_TIMES=1 in the first check-back", str(check_times(record)))
        found = frame.field("transactionId")
        check(found == half.transaction_id, f"transactionId {half.transaction_id}", found)
        frame.number("tranStateTableOffset")
        frame.number("commitLogOffset")


def _asks_again(trial: Trial, producer: Connection, asked: tuple[Frame, Record], half: Half) -> None:
    with trial.claim(
        "After the answer UNKNOWN it asks again, and after the answer COMMIT it delivers the message",
        hint="UNKNOWN (commitOrRollback 0) decides nothing: the producer's database did not answer, perhaps. Ask again at the "
        "next interval, with TRANSACTION_CHECK_TIMES one higher.",
        ours="broker/rocketmq_broker/server/transactions/check_service.py",
        apache="TransactionalMessageServiceImpl.check",
    ):
        answer_check(producer, asked[0], UNKNOWN)
        frame, record = next_check(producer, half.transaction_id)
        check(check_times(record) == 2, "TRANSACTION_CHECK_TIMES=2 in the second check-back", str(check_times(record)))
        answer_check(producer, frame, COMMIT)
        pull_until(producer, TOPIC, b"order 1", trial.patience_s)


def _believes_the_answer(trial: Trial, producer: Connection) -> None:
    with trial.claim(
        "After the answer ROLLBACK it asks no more, and delivers nothing",
        hint="The answer to a check-back is END_TRANSACTION, as after a local transaction: the same code should handle it.",
        ours="broker/rocketmq_broker/server/transactions/end_transaction_processor.py",
        apache="EndTransactionProcessor",
    ):
        send_half(producer, TOPIC, b"order 2", "T-2")
        frame, _ = next_check(producer, "T-2")
        answer_check(producer, frame, ROLLBACK)
        send_half(producer, TOPIC, b"order 3", "T-3")
        # Check-backs sent before the broker read the ROLLBACK have arrived before the response to this half message.
        producer.forget(lambda frame: b"T-2" in frame.body)
        # After two check-backs about T-3 the broker has had enough time to send another check-back about T-2.
        for _ in range(2):
            frame, _ = next_check(producer, "T-3")
            answer_check(producer, frame, UNKNOWN)
        again = [frame for frame in producer.inbox if b"T-2" in frame.body]
        check(not again, "no more check-backs about T-2", f"{len(again)} more")
        bodies = [record.body for record in pull_all(producer, TOPIC)]
        check(b"order 2" not in bodies, '"order 1" alone, whose answer was COMMIT', ", ".join(map(shown, bodies)))
