"""When and how often the broker asks producers about their pending transactions (RocketMQ's BrokerConfig)."""

from __future__ import annotations

from dataclasses import dataclass

from rocketmq_broker.message import properties as props

_IMMUNITY = props.beginning(props.CHECK_IMMUNITY_TIME_IN_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckPolicy:
    """The settings that check-backs follow; the defaults are RocketMQ's."""

    transaction_timeout_ms: int = 6_000
    """transactionTimeOut: the age at which a transaction is checked for the first time."""
    check_interval_ms: int = 60_000
    """transactionCheckInterval: the time from one check to the next, and from the last one to the discard."""
    answer_timeout_ms: int = 6_000
    """transactionCheckAnswerTimeOut: how long a check is unanswered before it is repeated, uncounted. RocketMQ has none."""
    check_max: int = 15
    """transactionCheckMax: after this many checks the message is discarded."""
    file_reserved_ms: int = 72 * 3600 * 1000
    """fileReservedTime: an older half message is discarded, however often its producers were asked."""
    hold_back_max: int = 100_000
    """How many half messages a pending one may lie behind the newest before it is put back."""

    def first_check_due(self, begun_ms: int, encoded_properties: bytes) -> int:
        """When a half message is checked first: CHECK_IMMUNITY_TIME_IN_SECONDS counts instead of the time-out, if it is a number.

        Never later than the message's expiry, so that a huge immunity does not keep it for ever.
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
