"""Stage 12: each transaction has one outcome, despite decisions that are repeated, late or from other groups."""

from tutorials.build_your_own.tester.connection import Connection
from tutorials.build_your_own.tester.frames import Frame
from tutorials.build_your_own.tester.layout import shown
from tutorials.build_your_own.tester.requests import (
    COMMIT,
    DISCARD_TOPIC,
    HALF_TOPIC,
    OP_TOPIC,
    ROLLBACK,
    Half,
    end_transaction,
    expect_code,
    fence,
    heart_beat,
    send,
    send_half,
    try_to_send,
)
from tutorials.build_your_own.tester.trial import Trial, check

TOPIC = "orders"
_OURS = "broker/rocketmq_broker/transaction/decision.py"
_APACHE = "EndTransactionProcessor"


def play(trial: Trial) -> None:
    """Runs the checks of this stage. Raises ClaimFailed if a check fails."""
    trial.start()
    connection = trial.connect()
    _the_first_decision_wins(trial, connection)
    _a_doubled_commit_delivers_once(trial, connection)
    _strangers_decide_nothing(trial, connection)
    _nobody_forges(trial, connection)
    _a_kill_changes_no_outcome(trial, connection)
    _a_kill_between_delivers_once(trial)


def _count(trial: Trial, connection: Connection, body: bytes) -> int:
    """Returns how many times a message is visible after the broker has handled all earlier requests."""
    return [record.body for record in fence(connection, TOPIC, trial.patience_s)].count(body)


def _check_count(trial: Trial, connection: Connection, body: bytes, wanted: int, after: str) -> None:
    found = _count(trial, connection, body)
    times = {0: "never", 1: "once", 2: "twice"}
    check(
        found == wanted,
        f"{shown(body)} visible {times[wanted]} after {after}",
        f"it is there {times.get(found, f'{found} times')}",
    )


def _check_refused(answer: Frame, what: str) -> None:
    check(answer.code != 0, f"a code other than 0 for {what}", "code 0 (SUCCESS)")


def _the_first_decision_wins(trial: Trial, connection: Connection) -> None:
    with trial.claim(
        "A COMMIT after a ROLLBACK is refused, and delivers nothing; a ROLLBACK after a COMMIT takes nothing back",
        hint="The producer rolled its order back. A later COMMIT is a mistake or an old frame, and would give a credit without "
        "an order. A decided half message is not pending any more: refuse every further decision.",
        ours=_OURS,
        apache=_APACHE,
    ):
        first = send_half(connection, TOPIC, b"rolled back first", "T-1")
        second = send_half(connection, TOPIC, b"committed first", "T-2")
        expect_code(end_transaction(connection, first, ROLLBACK), 0)
        _check_then(trial, connection, first, COMMIT, b"rolled back first", 0, "ROLLBACK and then COMMIT")
        expect_code(end_transaction(connection, second, COMMIT), 0)
        _check_then(trial, connection, second, ROLLBACK, b"committed first", 1, "COMMIT and then ROLLBACK")


def _check_then(trial: Trial, connection: Connection, half: Half, decision: int, body: bytes, wanted: int, after: str) -> None:
    answer = end_transaction(connection, half, decision)
    _check_count(trial, connection, body, wanted, after)
    _check_refused(answer, "the second decision")


def _a_doubled_commit_delivers_once(trial: Trial, connection: Connection) -> None:
    with trial.claim(
        "A COMMIT that comes twice delivers once",
        hint="A producer sends a COMMIT again if it got no answer, or if it also answers a check-back.",
        ours=_OURS,
        apache=_APACHE,
    ):
        half = send_half(connection, TOPIC, b"committed twice", "T-3")
        expect_code(end_transaction(connection, half, COMMIT), 0)
        end_transaction(connection, half, COMMIT)
        _check_count(trial, connection, b"committed twice", 1, "two COMMITs")


def _strangers_decide_nothing(trial: Trial, connection: Connection) -> None:
    with trial.claim(
        "A COMMIT for an unknown transaction, with a wrong queue offset or from another group is refused, and delivers nothing",
        hint="Check before you deliver: there is a pending half message at commitLogOffset, its queue offset is "
        "tranStateTableOffset, and its PGROUP is producerGroup.",
        ours=_OURS,
        apache="EndTransactionProcessor.checkPrepareMessage",
    ):
        plain = send(connection, TOPIC, b"a plain message")
        half = send_half(connection, TOPIC, b"pending", "T-4")
        wrong = {
            "the commit log offset of a plain message": {"commitLogOffset": str(plain.commit_log_offset)},
            "a commit log offset far behind the log's end": {"commitLogOffset": "123456789"},
            "a commit log offset in the middle of a record": {"commitLogOffset": str(half.stored.commit_log_offset + 1)},
            "a wrong queue offset": {"tranStateTableOffset": str(half.stored.queue_offset + 1)},
            "another producer group": {"producerGroup": "somebody_else"},
        }
        for what, changed in wrong.items():
            _check_refused(end_transaction(connection, half, COMMIT, **changed), f"COMMIT with {what}")
        _check_count(trial, connection, b"pending", 0, "COMMITs for other transactions")
        _check_count(trial, connection, b"a plain message", 1, "a COMMIT for it, which is no half message")
        expect_code(end_transaction(connection, half, COMMIT), 0, "for the right COMMIT after the wrong ones")
        _check_count(trial, connection, b"pending", 1, "the right COMMIT")


def _nobody_forges(trial: Trial, connection: Connection) -> None:
    with trial.claim(
        "A message that a client sends to one of the broker's own topics is refused: it would decide transactions",
        hint="A forged op message closes a half message, and the restart forgets the transaction. Refuse SEND_MESSAGE to the "
        "half topic, the op topic and TRANS_CHECK_MAX_TIME_TOPIC, whatever its properties are.",
        ours="broker/rocketmq_broker/server/topics/topic_table.py",
        apache="TopicValidator.isNotAllowedSendTopic",
    ):
        before = len(trial.files.records())
        for topic in (HALF_TOPIC, OP_TOPIC, DISCARD_TOPIC):
            answer = try_to_send(connection, topic, b"0", {"TAGS": "d"})
            _check_refused(answer, f"SEND_MESSAGE to {topic}")
        check(len(trial.files.records()) == before, "no new record in the log", "a record forged by the client")


def _a_kill_changes_no_outcome(trial: Trial, connection: Connection) -> None:
    half = send_half(connection, TOPIC, b"committed before a kill", "T-5")
    with trial.claim(
        "A COMMIT that was answered before kill -9 delivers once, also if the producer sends it again after the restart",
        hint="Read the op messages after a restart: they mark the decided half messages.",
        ours="broker/rocketmq_broker/server/transactions/transaction_recovery.py",
        apache="TransactionalMessageServiceImpl",
    ):
        expect_code(end_transaction(connection, half, COMMIT), 0)
        trial.kill()
        trial.start()
        connection = trial.connect()
        end_transaction(connection, half, COMMIT)
        _check_count(trial, connection, b"committed before a kill", 1, "COMMIT, kill -9, and COMMIT again")


def _a_kill_between_delivers_once(trial: Trial) -> None:
    with trial.claim(
        "A kill between the two records of a COMMIT delivers once: the tester cuts the later one off the log",
        hint="At the start, look for committed messages (SYSFLAG & 0xc = 8). PREPAREDTRANSACTIONOFFSET names the half message: "
        "it is decided, though its op message is missing. Write the op message then. And write the message before its op "
        "message: the other way round this kill would lose it.",
        ours="broker/rocketmq_broker/transaction/evidence.py",
        apache="none: Apache's broker delivers twice here",
    ):
        connection = trial.connect()
        half = send_half(connection, TOPIC, b"killed in between", "T-6")
        expect_code(end_transaction(connection, half, COMMIT), 0)
        trial.kill()
        _cut_later_record(trial, half)
        trial.start("It starts on a log that ends between the two records of a COMMIT")
        connection = trial.connect()
        heart_beat(connection)
        end_transaction(connection, half, COMMIT)
        _check_count(trial, connection, b"killed in between", 1, "COMMIT, a kill between its two records, and COMMIT again")


def _cut_later_record(trial: Trial, half: Half) -> None:
    """Truncates the log before the second of the two records that a COMMIT writes."""
    position, later = 0, 0
    for record in trial.files.records():
        is_op = record.topic == OP_TOPIC and record.body == b"%d" % half.stored.queue_offset
        if is_op or (record.topic == TOPIC and record.properties.get("UNIQ_KEY") == half.transaction_id):
            later = position
        position += record.size
    trial.files.cut_log(later)
    trial.files.lose_queues()
