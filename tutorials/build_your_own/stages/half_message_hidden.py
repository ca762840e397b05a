"""Stage 6: the broker stores a half message, and no consumer receives it."""

from tutorials.build_your_own.tester.connection import Connection
from tutorials.build_your_own.tester.failed import Failed
from tutorials.build_your_own.tester.layout import shown
from tutorials.build_your_own.tester.requests import HALF_TOPIC, Half, fence, pull, send_half
from tutorials.build_your_own.tester.trial import Trial, check

TOPIC = "orders"
QUEUE_ID = 2
BODY = b"an order that nobody has decided"
_OURS = "broker/rocketmq_broker/transaction/transitions.py"
_APACHE = "TransactionalMessageBridge.parseHalfMessageInner"


def play(trial: Trial) -> None:
    """Runs the checks of this stage. Raises ClaimFailed if a check fails."""
    trial.start()
    connection = trial.connect()
    half = _is_taken(trial, connection)
    _is_hidden(trial, connection)
    _waits_in_the_half_topic(trial, half)


def _is_taken(trial: Trial, connection: Connection) -> Half:
    with trial.claim(
        "A half message is answered with its queue offset in the half topic and its commit log offset",
        hint="SEND_MESSAGE with the property TRAN_MSG=true is a half message. It lies in queue 0 of RMQ_SYS_TRANS_HALF_TOPIC; "
        "the first one has queue offset 0. END_TRANSACTION will name both offsets.",
        ours=_OURS,
        apache=_APACHE,
    ):
        half = send_half(connection, TOPIC, BODY, "T-1", queue_id=QUEUE_ID)
        check(half.stored.queue_offset == 0, "queueOffset 0", f"queueOffset {half.stored.queue_offset}")
        return half


def _is_hidden(trial: Trial, connection: Connection) -> None:
    with trial.claim(
        "No consumer of its topic sees a half message",
        hint="Change topic and queue id before you store it. Nothing of it goes to the consume queue of its own topic.",
        ours=_OURS,
        apache=_APACHE,
    ):
        visible = fence(connection, TOPIC, trial.patience_s, queue_id=QUEUE_ID)
        records = visible + pull(connection, TOPIC, 1, queue_id=QUEUE_ID).records
        if records:
            record = records[0]
            raise Failed(
                f"only plain messages in {TOPIC}, queue {QUEUE_ID}: no COMMIT was sent",
                f"{shown(record.body)} at queue offset {record.number('QUEUEOFFSET')}",
                hint="A customer would get the credit for an order that may be rolled back a moment later.",
            )


def _waits_in_the_half_topic(trial: Trial, half: Half) -> None:
    with trial.claim(
        "It lies in RMQ_SYS_TRANS_HALF_TOPIC, with REAL_TOPIC and REAL_QID, and without transaction bits in SYSFLAG",
        hint="REAL_TOPIC and REAL_QID say where it goes on COMMIT. PGROUP says whose decision counts. The bits of SYSFLAG (0xc) "
        "are 0: with 4 RocketMQ would leave it out of the half topic's queue as well.",
        ours=_OURS,
        apache=_APACHE,
    ):
        records = trial.files.records_of(HALF_TOPIC)
        check(len(records) == 1, f"one record of {HALF_TOPIC} in the commit log", f"{len(records)}")
        record = records[0]
        wanted = {
            "REAL_TOPIC": TOPIC,
            "REAL_QID": str(QUEUE_ID),
            "PGROUP": half.group,
            "UNIQ_KEY": half.transaction_id,
            "TRAN_MSG": "true",
        }
        for name, value in wanted.items():
            found = record.properties.get(name)
            check(found == value, f"property {name}={value}", f"{name}={found}; the properties are {dict(record.properties)}")
        check(record.number("QUEUEID") == 0, "QUEUEID 0", f"QUEUEID {record.number('QUEUEID')}")
        check(record.body == BODY, f"the body {shown(BODY)}", shown(record.body))
        check(record.transaction_bits == 0, "SYSFLAG & 0xc = 0", f"SYSFLAG {record.number('SYSFLAG')}")
        check(
            record.number("PHYSICALOFFSET") == half.stored.commit_log_offset,
            f"the record at commit log offset {half.stored.commit_log_offset}, as msgId says",
            f"PHYSICALOFFSET {record.number('PHYSICALOFFSET')}",
        )
