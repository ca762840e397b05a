"""Stage 7: a COMMIT makes a half message visible to consumers exactly once."""

from tutorials.build_your_own.tester.connection import Connection
from tutorials.build_your_own.tester.failed import Failed
from tutorials.build_your_own.tester.layout import Record, shown
from tutorials.build_your_own.tester.requests import (
    COMMIT,
    OP_TOPIC,
    Half,
    end_transaction,
    end_transaction_oneway,
    expect_code,
    fence,
    pull_all,
    pull_until,
    send_half,
)
from tutorials.build_your_own.tester.trial import Trial, check

TOPIC = "orders"
QUEUE_ID = 2
_OURS = "broker/rocketmq_broker/server/transactions/transactional_messages.py"
_APACHE = "EndTransactionProcessor"


def play(trial: Trial) -> None:
    """Runs the checks of this stage. Raises ClaimFailed if a check fails."""
    trial.start()
    connection = trial.connect()
    halves = [send_half(connection, TOPIC, b"order %d" % number, f"T-{number}", queue_id=QUEUE_ID) for number in (1, 2, 3)]
    record = _delivers_what_was_committed(trial, connection, halves[1])
    _delivers_a_committed_message(trial, record, halves[1])
    _closes_the_half_message(trial, halves[1])
    with trial.claim(
        "A one-way COMMIT, as producers send it, is carried out as well",
        hint="Apache's producers send END_TRANSACTION with flag 2: they do not wait for the answer.",
        ours="broker/rocketmq_broker/server/transactions/end_transaction_processor.py",
        apache=_APACHE,
    ):
        end_transaction_oneway(connection, halves[2], COMMIT)
        pull_until(connection, TOPIC, b"order 3", trial.patience_s, queue_id=QUEUE_ID)


def _delivers_what_was_committed(trial: Trial, connection: Connection, half: Half) -> Record:
    with trial.claim(
        "After COMMIT the message is in its own topic and queue, once, and no other half message is",
        hint="Find the half message by commitLogOffset. REAL_TOPIC and REAL_QID of it say where the message goes.",
        ours=_OURS,
        apache=_APACHE,
    ):
        expect_code(end_transaction(connection, half, COMMIT), 0)
        visible = fence(connection, TOPIC, trial.patience_s, queue_id=QUEUE_ID)
        bodies = [record.body for record in visible]
        if bodies != [b"order 2"]:
            raise Failed(
                f'only "order 2" in {TOPIC}, queue {QUEUE_ID}',
                ", ".join(map(shown, bodies)) or "no message",
                hint=_where_else(connection),
            )
        return visible[0]


def _where_else(connection: Connection) -> str:
    """Searches the other queues for the message. Returns a description of the queue that has the message, or ""."""
    for queue_id in (0, 1, 3):
        if b"order 2" in [record.body for record in pull_all(connection, TOPIC, queue_id=queue_id)]:
            return f"The message is in queue {queue_id}. It was sent to queue {QUEUE_ID}: REAL_QID says so."
    return ""


def _delivers_a_committed_message(trial: Trial, record: Record, half: Half) -> None:
    with trial.claim(
        "The delivered record says that it was committed: 8 in SYSFLAG, and its half message in PREPAREDTRANSACTIONOFFSET",
        hint="SYSFLAG: take the bits 0xc out and put 8 in. PREPAREDTRANSACTIONOFFSET is the half message's commit log offset. "
        "Stage 12 uses it.",
        ours="broker/rocketmq_broker/transaction/transitions.py",
        apache="EndTransactionProcessor.endMessageTransaction",
    ):
        check(record.transaction_bits == COMMIT, "SYSFLAG & 0xc = 8", f"SYSFLAG {record.number('SYSFLAG')}")
        named = record.number("PREPAREDTRANSACTIONOFFSET")
        check(
            named == half.stored.commit_log_offset,
            f"PREPAREDTRANSACTIONOFFSET {half.stored.commit_log_offset}, where the half message lies",
            str(named),
        )
        kept = {name: record.properties.get(name) for name in ("UNIQ_KEY", "TAGS", "KEYS")}
        wanted = {"UNIQ_KEY": half.transaction_id, "TAGS": "created", "KEYS": "order-1"}
        check(kept == wanted, f"the properties that were sent, {wanted}", str(kept))


def _closes_the_half_message(trial: Trial, half: Half) -> None:
    with trial.claim(
        "An op message says that the half message is decided: RMQ_SYS_TRANS_OP_HALF_TOPIC, tag d, body = its queue offset",
        hint="The half message stays where it is: a log cannot be changed. The op message's body is the half message's queue "
        "offset in the half topic, in ASCII digits.",
        ours="broker/rocketmq_broker/transaction/messages/op_message.py",
        apache="TransactionalMessageBridge.addRemoveTagInTransactionOp",
    ):
        check_op_message(trial, half)


def check_op_message(trial: Trial, half: Half) -> None:
    """Raises Failed unless the log has one op message for the half message and no other op message."""
    ops = trial.files.records_of(OP_TOPIC)
    found = [(op.properties.get("TAGS"), op.body) for op in ops]
    wanted = [("d", b"%d" % half.stored.queue_offset)]
    if found != wanted:
        raise Failed(
            f'one record of {OP_TOPIC} in the log, with tag d and body "{half.stored.queue_offset}"',
            ", ".join(f"tag {tag} and body {shown(body)}" for tag, body in found) or "none",
        )
