"""The histories that the console replays."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rocketmq_broker.admin.replay.script import COMMIT, ROLLBACK, UNKNOWN, CheckHistory, ScriptedTransaction

HISTORIES: Final[Mapping[str, CheckHistory]] = MappingProxyType(
    {
        "never-decided": CheckHistory(
            title="Fifteen times UNKNOWN",
            summary="The producer answers UNKNOWN to each check-back.",
            transactions=(ScriptedTransaction(name="order-1", sent_ms=50_000),),
            until_ms=20 * 60_000,
        ),
        "late-commit": CheckHistory(
            title="A COMMIT after a check-back",
            summary="A slow COMMIT arrives after the first check-back. It names the first half message.",
            transactions=(
                ScriptedTransaction(
                    name="order-1", sent_ms=50_000, decision=COMMIT, decided_ms=80_000, answers=(UNKNOWN, COMMIT)
                ),
            ),
            until_ms=4 * 60_000,
        ),
        "two-offsets": CheckHistory(
            title="Two offsets and removeMap",
            summary="Four transactions: a COMMIT, a lost COMMIT, a ROLLBACK, and one that is too young for the first check().",
            transactions=(
                ScriptedTransaction(name="order-1", sent_ms=10_000, decision=COMMIT, decided_ms=11_000),
                ScriptedTransaction(name="order-2", sent_ms=20_000, answers=(UNKNOWN, COMMIT)),
                ScriptedTransaction(name="order-3", sent_ms=30_000, decision=ROLLBACK, decided_ms=31_000),
                ScriptedTransaction(name="order-4", sent_ms=58_000, decision=COMMIT, decided_ms=63_000),
            ),
            until_ms=4 * 60_000,
        ),
        "immunity": CheckHistory(
            title="Thirty minutes to pay",
            summary="CHECK_IMMUNITY_TIME_IN_SECONDS is 1800. The customer pays after 25 minutes, and the producer sends COMMIT.",
            transactions=(
                ScriptedTransaction(
                    name="order-1", sent_ms=50_000, decision=COMMIT, decided_ms=50_000 + 25 * 60_000, immunity_s=1800
                ),
            ),
            until_ms=30 * 60_000,
        ),
    }
)
"""Maps the name of each history to the history."""
