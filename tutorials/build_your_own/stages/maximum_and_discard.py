"""Stage 10: the broker discards an undecided message after transactionCheckMax check-backs."""

from tutorials.build_your_own.stages.check_back import check_times, next_check
from tutorials.build_your_own.tester.connection import Connection
from tutorials.build_your_own.tester.frames import CODES
from tutorials.build_your_own.tester.layout import shown
from tutorials.build_your_own.tester.requests import (
    DISCARD_TOPIC,
    UNKNOWN,
    answer_check,
    fence,
    heart_beat,
    pull_all,
    pull_until,
    send_half,
)
from tutorials.build_your_own.tester.trial import Trial, check

TOPIC = "orders"
CHECK_MAX = 2
SLEEPING = "a_group_that_is_down"
_OURS = "broker/rocketmq_broker/transaction/decision.py"
_APACHE = "TransactionalMessageServiceImpl.needDiscard"


def play(trial: Trial) -> None:
    """Runs the checks of this stage. Raises ClaimFailed if a check fails."""
    trial.start()
    connection = trial.connect("producer")
    heart_beat(connection)
    send_half(connection, TOPIC, b"order of a producer that is down", "T-down", group=SLEEPING)
    _asks_that_often(trial, connection)
    _keeps_the_message(trial, connection)
    _uses_no_check_up_for_nobody(trial)


def _asks_that_often(trial: Trial, connection: Connection) -> None:
    with trial.claim(
        f"A half message is asked about transactionCheckMax times ({CHECK_MAX}), numbered from 1 on, and then no more",
        hint=f"With transactionCheckMax={CHECK_MAX} there are {CHECK_MAX} check-backs, and at the next look the discard.",
        ours=_OURS,
        apache=_APACHE,
    ):
        send_half(connection, TOPIC, b"order 1", "T-1")
        for number in range(1, CHECK_MAX + 1):
            frame, record = next_check(connection, "T-1")
            check(check_times(record) == number, f"TRANSACTION_CHECK_TIMES={number}", str(check_times(record)))
            answer_check(connection, frame, UNKNOWN)
        connection.take_none_until(
            lambda frame: frame.code == CODES["CHECK_TRANSACTION_STATE"] and b"T-1" in frame.body,
            lambda: _is_discarded(connection),
            f"no more check-backs after {CHECK_MAX}: the message goes to {DISCARD_TOPIC}",
        )


def _is_discarded(connection: Connection) -> bool:
    return any(record.body == b"order 1" for record in pull_all(connection, DISCARD_TOPIC))


def _keeps_the_message(trial: Trial, connection: Connection) -> None:
    with trial.claim(
        "A message that is discarded is kept in TRANS_CHECK_MAX_TIME_TOPIC, queue 0, and no consumer of its topic sees it",
        hint="Discarded does not mean thrown away: the order may be stored, and then a person must be able to deliver it. Keep "
        "all properties of the half message: REAL_TOPIC and REAL_QID say where it would go.",
        ours="broker/rocketmq_broker/transaction/transitions.py",
        apache="DefaultTransactionalMessageCheckListener.resolveDiscardMsg",
    ):
        record = pull_until(connection, DISCARD_TOPIC, b"order 1", trial.patience_s)[-1]
        wanted = {"REAL_TOPIC": TOPIC, "REAL_QID": "0", "UNIQ_KEY": "T-1"}
        found = {name: record.properties.get(name) for name in wanted}
        check(found == wanted, f"properties {wanted}", str(found))
        bodies = [visible.body for visible in fence(connection, TOPIC, trial.patience_s)]
        check(not bodies, f"no message in {TOPIC}", ", ".join(map(shown, bodies)))


def _uses_no_check_up_for_nobody(trial: Trial) -> None:
    with trial.claim(
        "While no producer of the group is online, no check-back is counted: the first one that is sent has number 1",
        hint="Count a check-back when it is sent. Otherwise a night without the order service discards every order of that "
        "evening without a single check-back.",
        ours="broker/rocketmq_broker/server/transactions/check_service.py",
        apache="TransactionalMessageServiceImpl.check",
    ):
        # T-down was sent before the discarded T-1, so a wrong broker has had enough time to discard T-down, too.
        producer = trial.connect("producer that was down")
        discarded = [record.properties.get("UNIQ_KEY") for record in pull_all(producer, DISCARD_TOPIC)]
        check(
            "T-down" not in discarded, "a half message that still waits for its producer", "it was discarded without a check-back"
        )
        heart_beat(producer, SLEEPING)
        _, record = next_check(producer, "T-down")
        check(check_times(record) == 1, "TRANSACTION_CHECK_TIMES=1", f"TRANSACTION_CHECK_TIMES={check_times(record)}")
