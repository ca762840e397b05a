"""Fills in the part of a client's settings that the broker determines (RocketMQ's GrpcClientSettingsManager)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.message.configs import SubscriptionGroupConfig
from rocketmq_broker.proxy.checks import refuse_endpoints
from rocketmq_broker.proxy.connections.caller import Caller
from rocketmq_broker.proxy.protos import definition_pb2 as api

RECEIVE_BATCH_SIZE: Final = 32
LONG_POLLING_MS: Final = 20_000
_SEND_ATTEMPTS: Final = 3
_FIRST_PAUSE_MS, _MAX_PAUSE_MS, _MULTIPLIER = 10, 1_000, 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsAnswers:
    """Creates the responses to clients' settings.

    Values for which the broker has no setting are the defaults of Apache's proxy 5.3.3.

    `retry_delays_ms` are the delays before each redelivery of a failed message, in order.
    """

    group_of: Callable[[str], SubscriptionGroupConfig | None]
    is_fifo: Callable[[str], bool]
    max_body_bytes: int
    retry_delays_ms: Sequence[int]

    def of(self, caller: Caller, asked: api.Settings) -> api.Settings:
        """Returns the client's settings with the broker's part filled in. Raises CallRefused for invalid endpoints."""
        refuse_endpoints(asked.access_point)
        answer = api.Settings()
        answer.CopyFrom(asked)
        if asked.HasField("subscription"):
            self._subscription(answer)
        else:
            self._publishing(answer)
        # Apache's Python client 5.0.9 does not consume without a metric, and 5.1.0 hangs if it is off. So metrics are on
        # for Python clients, and the broker discards what they report.
        answer.metric.CopyFrom(api.Metric(on=caller.language == "PYTHON", endpoints=asked.access_point))
        return answer

    def _publishing(self, answer: api.Settings) -> None:
        answer.publishing.validate_message_type = True
        answer.publishing.max_body_size = self.max_body_bytes
        answer.backoff_policy.max_attempts = _SEND_ATTEMPTS
        backoff = answer.backoff_policy.exponential_backoff
        backoff.initial.FromMilliseconds(_FIRST_PAUSE_MS)
        backoff.max.FromMilliseconds(_MAX_PAUSE_MS)
        backoff.multiplier = _MULTIPLIER

    def _subscription(self, answer: api.Settings) -> None:
        subscription = answer.subscription
        subscription.receive_batch_size = RECEIVE_BATCH_SIZE
        subscription.long_polling_timeout.FromMilliseconds(LONG_POLLING_MS)
        subscription.fifo = any(self.is_fifo(entry.topic.name) for entry in subscription.subscriptions)
        group = self.group_of(subscription.group.name) or SubscriptionGroupConfig(subscription.group.name)
        answer.backoff_policy.max_attempts = group.retry_max_times + 1
        pauses = answer.backoff_policy.customized_backoff
        del pauses.next[:]
        for delay_ms in self.retry_delays_ms:
            pauses.next.add().FromMilliseconds(delay_ms)
