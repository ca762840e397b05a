"""The settings of a push consumer, with RocketMQ's defaults (DefaultMQPushConsumer)."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from rocketmq_broker.client.checks.settings_check import check_member, check_whole_number
from rocketmq_broker.client.errors import IllegalConfiguration
from rocketmq_broker.message.record import MAX_BODY_LENGTH
from rocketmq_broker.message.text.mistakes import kind_of
from rocketmq_broker.protocol.bodies.heartbeat import ConsumeFromWhere, MessageModel

HALF_AN_HOUR_MS = 30 * 60 * 1000
_DEFAULT_MAX_RECONSUME_TIMES = 16


def _local_offset_directory() -> Path:
    return Path.home() / ".rocketmq_offsets"


class ConsumerOptions(TypedDict, total=False):
    """The keyword arguments of PushConsumer, for editors and type checkers. ConsumerSettings documents them."""

    message_model: MessageModel
    consume_from_where: ConsumeFromWhere
    consume_timestamp_ms: int
    consume_thread_max: int
    consume_message_batch_max_size: int
    pull_batch_size: int
    pull_threshold_for_queue: int
    pull_threshold_size_for_queue: int
    consume_concurrently_max_span: int
    max_body_size: int
    max_reconsume_times: int | None
    instance_name: str
    local_offset_directory: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """Settings with RocketMQ's names and defaults. Raises IllegalConfiguration if a value has a wrong type or is out of range."""

    message_model: MessageModel = MessageModel.CLUSTERING
    consume_from_where: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    consume_timestamp_ms: int
    """The start time for CONSUME_FROM_TIMESTAMP, in milliseconds since the epoch. The default is half an hour ago."""
    consume_thread_max: int = 20
    consume_message_batch_max_size: int = 1
    """The maximum number of messages in one call of the listener. A call takes the waiting messages, and never waits for more."""
    pull_batch_size: int = 32
    pull_threshold_for_queue: int = 1000
    """The number of unacknowledged messages of a queue above which pulling pauses."""
    pull_threshold_size_for_queue: int = 100
    """The total size in MiB of the unacknowledged message bodies of a queue above which pulling pauses."""
    consume_concurrently_max_span: int = 2000
    """The offset difference between a queue's newest and oldest unacknowledged messages above which pulling pauses."""
    max_body_size: int = MAX_BODY_LENGTH
    """The maximum size of a decompressed body in bytes. A message with a longer body is moved to the dead-letter topic."""
    max_reconsume_times: int | None = None
    """The maximum number of redeliveries before a message is moved to the dead-letter topic.

    None means 16, or no limit for an orderly consumer.
    """
    instance_name: str = "DEFAULT"
    """The consumer's name, which distinguishes the offset files of broadcasting consumers of one group on one machine."""
    local_offset_directory: Path = field(default_factory=_local_offset_directory)

    def __post_init__(self) -> None:
        """Checks types and ranges (DefaultMQPushConsumerImpl.checkConfig)."""
        for name, maximum in (
            ("consume_thread_max", 1000),
            ("consume_message_batch_max_size", 1024),
            ("pull_batch_size", 1024),
            ("pull_threshold_for_queue", 65535),
            ("pull_threshold_size_for_queue", 1024),
            ("consume_concurrently_max_span", 65535),
            ("max_body_size", 2**31 - 1),
        ):
            check_whole_number(name, getattr(self, name), minimum=1, maximum=maximum)
        check_member("message_model", self.message_model, MessageModel)
        check_member("consume_from_where", self.consume_from_where, ConsumeFromWhere)
        check_whole_number("consume_timestamp_ms", self.consume_timestamp_ms, minimum=0)
        if self.max_reconsume_times is not None:
            check_whole_number("max_reconsume_times", self.max_reconsume_times, minimum=-1)
        if not isinstance(self.instance_name, str):
            raise IllegalConfiguration(f"instance_name must be a str, not {kind_of(self.instance_name)}")
        if not isinstance(self.local_offset_directory, Path):
            raise IllegalConfiguration(
                f"local_offset_directory must be a pathlib.Path, not {kind_of(self.local_offset_directory)}"
            )

    @property
    def is_broadcasting(self) -> bool:
        """Returns True if every consumer of the group gets all messages."""
        return self.message_model is MessageModel.BROADCASTING

    @property
    def redeliveries(self) -> int:
        """Returns the maximum number of redeliveries of a message in a concurrent consumer."""
        given = self.max_reconsume_times
        return _DEFAULT_MAX_RECONSUME_TIMES if given is None or given < 0 else given

    @property
    def orderly_redeliveries(self) -> int | None:
        """Returns the maximum number of redeliveries of a message in an orderly consumer; None means no limit."""
        given = self.max_reconsume_times
        return None if given is None or given < 0 else given
