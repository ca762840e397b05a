"""Reports a push consumer's state to operators (RocketMQ's DefaultMQPushConsumerImpl.consumerRunningInfo)."""

import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Final

from rocketmq_broker.client.pull.process_queue import ProcessQueue
from rocketmq_broker.client.pull.subscription import Subscription
from rocketmq_broker.client.push.consumer_settings import ConsumerSettings
from rocketmq_broker.client.push.operators.consumer_statistics import ConsumerStatistics
from rocketmq_broker.client.rebalance.queue_locks import OwnQueueLocks
from rocketmq_broker.message import MessageQueue
from rocketmq_broker.protocol.bodies.heartbeat import ConsumeType
from rocketmq_broker.protocol.bodies.running_info import (
    PROP_CLIENT_VERSION,
    PROP_CONSUME_ORDERLY,
    PROP_CONSUME_TYPE,
    PROP_CONSUMER_START_TIMESTAMP,
    PROP_NAMESERVER_ADDR,
    PROP_THREADPOOL_CORE_SIZE,
    ConsumerRunningInfo,
    ProcessQueueInfo,
)
from rocketmq_broker.protocol.codes import CURRENT_VERSION_NAME
from rocketmq_broker.protocol.queue_table import QueueTable
from rocketmq_broker.world import World

_BYTES_PER_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerState:
    """A view of one running consumer's state. Use it on the event loop only."""

    group: str
    name_servers: str
    settings: ConsumerSettings
    subscriptions: Mapping[str, Subscription]
    process_queues: Callable[[], Mapping[MessageQueue, ProcessQueue]]
    statistics: ConsumerStatistics
    locks: OwnQueueLocks | None
    is_orderly: bool
    world: World
    started_ms: int

    def running_info(self, *, with_threads: bool) -> ConsumerRunningInfo:
        """Returns the whole report. Thread stacks are optional, because collecting them pauses the process for a moment."""
        return ConsumerRunningInfo(
            properties=self._properties(),
            subscription_set=[self.subscriptions[topic].to_wire() for topic in sorted(self.subscriptions)],
            mq_table=QueueTable({queue: self._queue_info(each) for queue, each in sorted(self.process_queues().items())}),
            status_table={topic: self.statistics.speed(topic) for topic in sorted(self.subscriptions)},
            jstack=thread_dump() if with_threads else None,
        )

    def offsets(self, topic: str) -> QueueTable[int]:
        """Returns the offset of each queue of the topic, or of all queues if `topic` is empty."""
        return QueueTable(
            {queue: each.committable_offset for queue, each in self.process_queues().items() if topic in ("", queue.topic)}
        )

    def _properties(self) -> dict[str, str]:
        own = {_java_name(each.name): _text(getattr(self.settings, each.name)) for each in fields(self.settings)}
        given = self.settings.max_reconsume_times
        return own | {
            "maxReconsumeTimes": "-1" if given is None else str(given),
            "consumerGroup": self.group,
            "namesrvAddr": self.name_servers,
            PROP_NAMESERVER_ADDR: self.name_servers,
            PROP_CONSUME_TYPE: ConsumeType.CONSUME_PASSIVELY.value,
            PROP_CONSUME_ORDERLY: _text(self.is_orderly),
            PROP_THREADPOOL_CORE_SIZE: str(self.settings.consume_thread_max),
            PROP_CONSUMER_START_TIMESTAMP: str(self.started_ms),
            PROP_CLIENT_VERSION: CURRENT_VERSION_NAME,
        }

    def _queue_info(self, process_queue: ProcessQueue) -> ProcessQueueInfo:
        cached = process_queue.cached_offsets
        locked_s = self.locks.locked_s(process_queue.queue) if self.locks is not None else None
        return ProcessQueueInfo(
            commit_offset=process_queue.committable_offset,
            cached_msg_min_offset=cached[0] if cached else 0,
            cached_msg_max_offset=cached[1] if cached else 0,
            cached_msg_count=process_queue.message_count,
            cached_msg_size_in_mi_b=process_queue.message_bytes // _BYTES_PER_MIB,
            # Concurrent consumers lock no queues, but Apache's client reports their queues as locked.
            locked=self.locks is None or self.locks.holds(process_queue.queue),
            last_lock_timestamp=self._wall_ms(process_queue.begun_s if locked_s is None else locked_s),
            last_pull_timestamp=self._wall_ms(process_queue.pulled_s),
            last_consume_timestamp=self._wall_ms(process_queue.acknowledged_s),
        )

    def _wall_ms(self, steady_s: float) -> int:
        """Converts a time of the steady clock to a time of the wall clock."""
        return self.world.wall_ms() - int((self.world.steady_s() - steady_s) * 1000)


def _java_name(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _text(value: object) -> str:
    if isinstance(value, Enum):
        return value.name
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


_NAME_WIDTH: Final = 40
_MAX_CHARACTERS: Final = 256 * 1024


def thread_dump() -> str:
    """Returns the stack of each thread, innermost call first, without the values of variables."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    lines: list[str] = []
    for identifier, frame in sys._current_frames().items():
        name = names.get(identifier, "unknown")
        if lines:
            lines.append("")
        lines.append(f"{name:<{_NAME_WIDTH}}TID: {identifier} STATE: RUNNING")
        calls = reversed(traceback.extract_stack(frame))
        lines += [f"{name:<{_NAME_WIDTH}}{call.name}({call.filename}:{call.lineno})" for call in calls]
    return "\n".join(lines)[:_MAX_CHARACTERS]
