"""How a push consumer consumes, with RocketMQ's defaults (DefaultMQPushConsumer), checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from broker.client.clock import now_ms
from broker.client.errors import IllegalConfiguration
from broker.protocol.heartbeat import ConsumeFromWhere, MessageModel

_HALF_AN_HOUR_MS = 30 * 60 * 1000
_DEFAULT_MAX_RECONSUME_TIMES = 16


def _local_offset_directory() -> Path:
    return Path.home() / ".rocketmq_offsets"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """All of them have RocketMQ's names and defaults. Raises IllegalConfiguration for a number out of range."""

    message_model: MessageModel = MessageModel.CLUSTERING
    consume_from_where: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    consume_timestamp_ms: int = field(default_factory=lambda: now_ms() - _HALF_AN_HOUR_MS)
    """For CONSUME_FROM_TIMESTAMP: milliseconds since the epoch."""
    consume_thread_max: int = 20
    consume_message_batch_max_size: int = 1
    """The most messages that the listener is given at a time."""
    pull_batch_size: int = 32
    pull_threshold_for_queue: int = 1000
    """Pulling a queue pauses with more unacknowledged messages than this."""
    pull_threshold_size_for_queue: int = 100
    """The same in MiB of bodies."""
    consume_concurrently_max_span: int = 2000
    """Pulling a queue pauses while its oldest unacknowledged message is this far behind."""
    max_reconsume_times: int | None = None
    """Redeliveries before the dead letters. None: 16, and for ever where order is kept."""
    instance_name: str = "DEFAULT"
    """Tells apart the offset files of broadcasting consumers of one group on one machine."""
    local_offset_directory: Path = field(default_factory=_local_offset_directory)

    def __post_init__(self) -> None:
        """Check the ranges (DefaultMQPushConsumerImpl.checkConfig)."""
        for name, most in (
            ("consume_thread_max", 1000),
            ("consume_message_batch_max_size", 1024),
            ("pull_batch_size", 1024),
            ("pull_threshold_for_queue", 65535),
            ("pull_threshold_size_for_queue", 1024),
            ("consume_concurrently_max_span", 65535),
        ):
            value = getattr(self, name)
            if not 1 <= value <= most:
                raise IllegalConfiguration(f"{name} is {value}; it has to be 1 to {most}")

    @property
    def is_broadcasting(self) -> bool:
        """Whether every consumer of the group gets all messages."""
        return self.message_model is MessageModel.BROADCASTING

    @property
    def redeliveries(self) -> int:
        """The most redeliveries of a message that is consumed in no order."""
        given = self.max_reconsume_times
        return _DEFAULT_MAX_RECONSUME_TIMES if given is None or given < 0 else given

    @property
    def orderly_redeliveries(self) -> int | None:
        """The same where order is kept; None: for ever."""
        given = self.max_reconsume_times
        return None if given is None or given < 0 else given
