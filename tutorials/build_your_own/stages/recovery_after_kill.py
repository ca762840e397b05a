"""Stage 11: the broker recovers from kill -9 and from the damage that a crash causes."""

from tutorials.build_your_own.stages.check_back import next_check
from tutorials.build_your_own.tester.connection import Connection
from tutorials.build_your_own.tester.failed import Failed
from tutorials.build_your_own.tester.layout import shown
from tutorials.build_your_own.tester.requests import (
    COMMIT,
    UNKNOWN,
    Half,
    answer_check,
    end_transaction,
    expect_code,
    heart_beat,
    pull_all,
    pull_until,
    send,
    send_half,
)
from tutorials.build_your_own.tester.trial import Trial, check

TOPIC = "orders"
PLAIN = [b"message %d" % number for number in range(3)]
_OURS = "broker/rocketmq_broker/store/recovery/recovery.py"
_APACHE = "CommitLog.recoverAbnormally"


def play(trial: Trial) -> None:
    """Runs the checks of this stage. Raises ClaimFailed if a check fails."""
    trial.start()
    connection = trial.connect()
    pending = _fill(trial, connection)
    end = _kill_and_damage(trial)
    trial.start("After kill -9 it starts again on its store")
    connection = trial.connect()
    _has_everything(trial, connection)
    _goes_on_behind_the_last_record(trial, connection, end)
    _asks_about_what_was_pending(trial, connection, pending)


def _fill(trial: Trial, connection: Connection) -> Half:
    """Sends three messages, commits one transaction, and leaves another transaction pending."""
    with trial.claim(
        "Messages, half messages and a COMMIT are answered with 0",
        hint="Stages 2, 6 and 7 have this.",
        ours="broker/rocketmq_broker/server/sending/send_processor.py",
        apache="SendMessageProcessor",
    ):
        for body in PLAIN:
            send(connection, TOPIC, body, properties={"TAGS": "created"})
        pending = send_half(connection, TOPIC, b"order that is pending", "T-pending")
        decided = send_half(connection, TOPIC, b"order that is committed", "T-committed")
        expect_code(end_transaction(connection, decided, COMMIT), 0)
        return pending


def _kill_and_damage(trial: Trial) -> int:
    """Kills the broker, writes an incomplete record after the log's end, and deletes the consume queues.

    Returns the position of the log's end at the time of the kill.
    """
    with trial.claim(
        "What was acknowledged is in the commit log after kill -9",
        hint="Bytes in your program's buffers are lost with the process. Write them before you answer.",
        ours="broker/rocketmq_broker/store/log/commit_log.py",
        apache="CommitLog",
    ):
        trial.kill()
        records = trial.files.records()
        check(len(records) == 7, "7 records: 3 messages, 2 half messages, 1 committed message, 1 op message", f"{len(records)}")
        end = sum(record.size for record in records)
        trial.files.tear(end, records[0].data[:-20])
        trial.files.lose_queues()
        return end


def _has_everything(trial: Trial, connection: Connection) -> None:
    with trial.claim(
        "After the restart consumers get the same messages at the same queue offsets, though the consume queues were lost",
        hint="The commit log has everything: topic, queue id and queue offset of each record. Read it at the start, and rebuild "
        "the queues.",
        ours="broker/rocketmq_broker/store/recovery/queue_recovery.py",
        apache=_APACHE,
    ):
        wanted = [*PLAIN, b"order that is committed"]
        records = pull_until(connection, TOPIC, wanted[-1], trial.patience_s)
        bodies = [record.body for record in records]
        check(bodies == wanted, ", ".join(map(shown, wanted)), ", ".join(map(shown, bodies)))
        offsets = [record.number("QUEUEOFFSET") for record in records]
        check(offsets == [0, 1, 2, 3], "queue offsets 0, 1, 2, 3", f"{offsets}")


def _goes_on_behind_the_last_record(trial: Trial, connection: Connection, end: int) -> None:
    with trial.claim(
        "A record that the crash tore is no message: the next one is written in its place",
        hint="The log ends behind the last whole record: its lengths add up, its magic code is there, its BODYCRC is right. What "
        "follows is cut off. Neither the size of the file nor its last byte says where the log ends.",
        ours=_OURS,
        apache=_APACHE,
    ):
        stored = send(connection, TOPIC, b"after the crash")
        _check_whole(trial, end, stored.commit_log_offset)
        record = pull_until(connection, TOPIC, b"after the crash", trial.patience_s)[-1]
        queue_offset = record.number("QUEUEOFFSET")
        check(queue_offset == 4, "queue offset 4 for the next message", f"queue offset {queue_offset}")


def _check_whole(trial: Trial, end: int, commit_log_offset: int) -> None:
    """Raises Failed unless only intact records lie between the log's end at the time of the kill and the next message."""
    wanted = f"whole records from byte {end}, the log's end at the kill, including the next message"
    if commit_log_offset < end:
        raise Failed(wanted, f"the next message at byte {commit_log_offset}, written over records that were acknowledged")
    try:
        places = [record.number("PHYSICALOFFSET") for record in trial.files.records()]
    except Failed:
        places = []
    if commit_log_offset not in places:
        raise Failed(
            wanted,
            f"the torn record still at byte {end}, and the next message behind it, at byte {commit_log_offset}",
            hint="A reader of the log stops at the torn record: all that follows it would be lost at the next start.",
        )


def _asks_about_what_was_pending(trial: Trial, connection: Connection, pending: Half) -> None:
    with trial.claim(
        "After the restart the pending transaction is asked about, and the one that was decided is not",
        hint="A half message without op message is pending. Read both topics at the start.",
        ours="broker/rocketmq_broker/server/transactions/transaction_recovery.py",
        apache="TransactionalMessageServiceImpl.fillOpRemoveMap",
    ):
        heart_beat(connection)
        frame, _ = next_check(connection, pending.transaction_id)
        answer_check(connection, frame, UNKNOWN)
        frame, _ = next_check(connection, pending.transaction_id)
        others = [found for found in connection.inbox if b"T-committed" in found.body]
        check(not others, "no check-back about what was decided before the kill", f"{len(others)} of them")
        answer_check(connection, frame, COMMIT)
        pull_until(connection, TOPIC, b"order that is pending", trial.patience_s)
        bodies = [record.body for record in pull_all(connection, TOPIC)]
        twice = sorted({body for body in bodies if bodies.count(body) > 1})
        check(not twice, "each message once", f"more than once: {', '.join(map(shown, twice))}")
