"""Stage 8: a ROLLBACK discards the half message."""

from tutorials.build_your_own.stages.commit_delivers import check_op_message
from tutorials.build_your_own.tester.layout import shown
from tutorials.build_your_own.tester.requests import ROLLBACK, end_transaction, expect_code, fence, send_half
from tutorials.build_your_own.tester.trial import Trial, check

TOPIC = "orders"


def play(trial: Trial) -> None:
    """Runs the checks of this stage. Raises ClaimFailed if a check fails."""
    trial.start()
    connection = trial.connect()
    half = send_half(connection, TOPIC, b"order 1", "T-1")
    with trial.claim(
        "After ROLLBACK the message is in no queue of its topic",
        hint="commitOrRollback is 12 for ROLLBACK and 8 for COMMIT. 12 & 8 is 8: compare the numbers, do not test one bit.",
        ours="broker/rocketmq_broker/transaction/decision.py",
        apache="EndTransactionProcessor",
    ):
        expect_code(end_transaction(connection, half, ROLLBACK), 0)
        bodies = [record.body for record in fence(connection, TOPIC, trial.patience_s)]
        check(not bodies, f"no message in {TOPIC}, queue 0", ", ".join(map(shown, bodies)))
    with trial.claim(
        "An op message says that the half message is decided",
        hint="A ROLLBACK that is only in memory is forgotten by a restart. Then the broker asks about the order again, "
        "for ever if the producer has forgotten it too.",
        ours="broker/rocketmq_broker/transaction/messages/op_message.py",
        apache="TransactionalMessageServiceImpl.deletePrepareMessage",
    ):
        check_op_message(trial, half)
