"""Tests a store that one broker fills until it is killed, and that another broker opens."""

from collections.abc import Sequence
from pathlib import Path

from tutorials.build_your_own.curriculum import quick_checks
from tutorials.build_your_own.stages.check_back import next_check
from tutorials.build_your_own.tester.broker_process import BrokerProcess
from tutorials.build_your_own.tester.children import Children
from tutorials.build_your_own.tester.ports import held_port
from tutorials.build_your_own.tester.requests import (
    COMMIT,
    answer_check,
    end_transaction,
    heart_beat,
    pull_until,
    send,
    send_half,
)
from tutorials.build_your_own.tester.timeline import Timeline
from tutorials.build_your_own.tester.trial import Trial

TOPIC = "orders"
ALL_SENT = [b"a message", b"committed", b"sent to the second broker", b"pending"]
CHECK_MAX = 1000
"""Nothing is discarded while a test looks around, however slow the machine."""


def seen_after_changing_brokers(first: Sequence[str], second: Sequence[str], home: Path, patience_s: float) -> list[bytes]:
    """Returns the bodies of all messages that consumers receive after the second broker has replaced the first.

    `first` is killed when it has a message, a committed transaction and a pending transaction. `second` then sends a
    check-back for the pending transaction, and the response is COMMIT.
    """
    with Children() as children, held_port() as port:
        before, after = (
            Trial(BrokerProcess(command, home, port, quick_checks(CHECK_MAX), children), Timeline(), patience_s)
            for command in (first, second)
        )
        before.start()
        connection = before.connect()
        send(connection, TOPIC, b"a message")
        committed, pending = (send_half(connection, TOPIC, name, name.decode()) for name in (b"committed", b"pending"))
        end_transaction(connection, committed, COMMIT)
        before.kill()
        after.start()
        connection = after.connect()
        send(connection, TOPIC, b"sent to the second broker")  # it makes the topic: who keeps topics elsewhere has lost it
        heart_beat(connection)
        asked, _ = next_check(connection, pending.transaction_id)
        answer_check(connection, asked, COMMIT)
        return [record.body for record in pull_until(connection, TOPIC, b"pending", patience_s)]
