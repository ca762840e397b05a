"""The settings for when and how often the broker sends check-backs (RocketMQ's BrokerConfig)."""

from dataclasses import dataclass

from rocketmq_broker.message import properties as props

_IMMUNITY = props.beginning(props.CHECK_IMMUNITY_TIME_IN_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckPolicy:
    """The settings of check-backs, with RocketMQ's defaults."""

    transaction_timeout_ms: int = 6_000
    """The age of a transaction at its first check, in milliseconds (transactionTimeOut)."""
    check_interval_ms: int = 60_000
    """The time between two checks, and between the last check and the discard, in milliseconds (transactionCheckInterval)."""
    answer_timeout_ms: int = 6_000
    """The time in milliseconds after which an unanswered check is repeated (transactionCheckAnswerTimeOut).

    RocketMQ has no such setting.
    """
    check_max: int = 15
    """The number of checks after which the message is discarded (transactionCheckMax)."""
    file_reserved_ms: int = 72 * 3600 * 1000
    """The age in milliseconds at which a half message is discarded, regardless of its number of checks (fileReservedTime)."""
    hold_back_max: int = 100_000
    """The maximum distance between a pending half message and the newest one, in half messages.

    An older pending half message is put back: it is copied to the end of the half queue.
    """

    def first_check_due(self, begun_ms: int, encoded_properties: bytes) -> int:
        """Returns the time of the first check in milliseconds. CHECK_IMMUNITY_TIME_IN_SECONDS, if valid, replaces the timeout.

        The first check is never due after the message's expiry, regardless of the immunity time.
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
