"""The policy of check-backs: when and how often the broker asks producers (RocketMQ's BrokerConfig)."""

from __future__ import annotations

from dataclasses import dataclass

from rocketmq_broker.message import properties as props

_IMMUNITY = props.beginning(props.CHECK_IMMUNITY_TIME_IN_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckPolicy:
    """The settings of check-backs; the defaults are RocketMQ's."""

    transaction_timeout_ms: int = 6_000
    """transactionTimeOut: the age of a transaction at its first check."""
    check_interval_ms: int = 60_000
    """transactionCheckInterval: the time from one check to the next, and from the last one to the discard."""
    answer_timeout_ms: int = 6_000
    """transactionCheckAnswerTimeOut: the wait for an answer before the check is repeated, uncounted. RocketMQ has none."""
    check_max: int = 15
    """transactionCheckMax: after this many checks the message is discarded."""
    file_reserved_ms: int = 72 * 3600 * 1000
    """fileReservedTime: an older half message is discarded, after any number of checks."""
    hold_back_max: int = 100_000
    """The distance in half messages from the newest one at which a pending one is put back."""

    def first_check_due(self, begun_ms: int, encoded_properties: bytes) -> int:
        """Returns the time of the first check: CHECK_IMMUNITY_TIME_IN_SECONDS replaces the time-out, if it is a number.

        The check is never later than the message's expiry, so that a huge immunity does not keep the message for ever.
        """
        wait_ms = self.transaction_timeout_ms
        if encoded_properties.find(_IMMUNITY) >= 0:
            wait_ms = _immunity_ms(encoded_properties, wait_ms)
        return begun_ms + min(wait_ms, self.file_reserved_ms + 1)


def _immunity_ms(encoded_properties: bytes, otherwise_ms: int) -> int:
    text = props.find(encoded_properties, props.CHECK_IMMUNITY_TIME_IN_SECONDS) or ""
    try:
        seconds = int(text)
    except ValueError:
        return otherwise_ms
    return seconds * 1000 if seconds >= 0 else otherwise_ms
