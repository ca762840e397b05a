"""The settings of a push consumer, with RocketMQ's defaults (DefaultMQPushConsumer) and checks."""

from __future__ import annotations

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
    """The settings that a program may pass to a PushConsumer by name, for editors and type checkers; see ConsumerSettings."""

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
    """Settings under RocketMQ's names and with its defaults. Raises IllegalConfiguration for one of another type or range."""

    message_model: MessageModel = MessageModel.CLUSTERING
    consume_from_where: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    consume_timestamp_ms: int
    """For CONSUME_FROM_TIMESTAMP: milliseconds since the epoch; the default is half an hour ago."""
    consume_thread_max: int = 20
    consume_message_batch_max_size: int = 1
    """The most messages of a queue in one call of the listener. A call takes those that wait for it, and waits for no others."""
    pull_batch_size: int = 32
    pull_threshold_for_queue: int = 1000
    """Unacknowledged messages of a queue above which pulling it pauses."""
    pull_threshold_size_for_queue: int = 100
    """MiB of unacknowledged bodies of a queue above which pulling it pauses."""
    consume_concurrently_max_span: int = 2000
    """The distance to a queue's oldest unacknowledged message above which pulling it pauses."""
    max_body_size: int = MAX_BODY_LENGTH
    """Bytes of a compressed body when uncompressed. A longer one goes to the dead letters."""
    max_reconsume_times: int | None = None
    """Redeliveries before the dead letters. None: 16, and without end for an orderly consumer."""
    instance_name: str = "DEFAULT"
    """The name that separates the offset files of broadcasting consumers of one group on one machine."""
    local_offset_directory: Path = field(default_factory=_local_offset_directory)

    def __post_init__(self) -> None:
        """Checks types and ranges (DefaultMQPushConsumerImpl.checkConfig)."""
        for name, most in (
            ("consume_thread_max", 1000),
            ("consume_message_batch_max_size", 1024),
            ("pull_batch_size", 1024),
            ("pull_threshold_for_queue", 65535),
            ("pull_threshold_size_for_queue", 1024),
            ("consume_concurrently_max_span", 65535),
            ("max_body_size", 2**31 - 1),
        ):
            check_whole_number(name, getattr(self, name), least=1, most=most)
        check_member("message_model", self.message_model, MessageModel)
        check_member("consume_from_where", self.consume_from_where, ConsumeFromWhere)
        check_whole_number("consume_timestamp_ms", self.consume_timestamp_ms, least=0)
        if self.max_reconsume_times is not None:
            check_whole_number("max_reconsume_times", self.max_reconsume_times, least=-1)
        if not isinstance(self.instance_name, str):
            raise IllegalConfiguration(f"instance_name is {kind_of(self.instance_name)}; a str is expected")
        if not isinstance(self.local_offset_directory, Path):
            raise IllegalConfiguration(
                f"local_offset_directory is {kind_of(self.local_offset_directory)}; a pathlib.Path is expected"
            )

    @property
    def is_broadcasting(self) -> bool:
        """Returns whether every consumer of the group gets all messages."""
        return self.message_model is MessageModel.BROADCASTING

    @property
    def redeliveries(self) -> int:
        """Returns the most redeliveries of a message that is consumed without order."""
        given = self.max_reconsume_times
        return _DEFAULT_MAX_RECONSUME_TIMES if given is None or given < 0 else given

    @property
    def orderly_redeliveries(self) -> int | None:
        """Returns the most redeliveries of a message that is consumed in order; None: without end."""
        given = self.max_reconsume_times
        return None if given is None or given < 0 else given
