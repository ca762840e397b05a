"""Manages the broker's topics, and creates topics automatically (RocketMQ's TopicConfigManager)."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from rocketmq_broker.message import permissions, topics
from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.protocol.codes import FURTHER_DETAILS, ResponseCode
from rocketmq_broker.remoting.alarm import Alarm
from rocketmq_broker.remoting.dispatcher import RequestRefused
from rocketmq_broker.server.topics.names import refuse_illegal_topic, refuse_unless
from rocketmq_broker.store import StoreUnwritable, TopicConfigs

SCHEDULE_TOPIC_QUEUES = 18
BENCHMARK_TOPIC_QUEUES = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRules:
    """Settings that determine the initial topics, and the topics that the broker may create for a sent message."""

    cluster: str
    broker_name: str
    auto_create_topic_enable: bool = True
    default_topic_queue_nums: int = 8
    cluster_topic_enable: bool = True
    broker_topic_enable: bool = True
    trace_topic: str | None = None
    max_topics: int = 10_000
    """The maximum number of topics that clients and operators may create. It does not apply to retry and dead-letter topics."""


class TopicTable:
    """All topics and their settings.

    Retry topics and changes by the name server are saved by `persist_changes`. Other changes are saved immediately. A crash may
    lose a retry topic, which the group's next heartbeat creates again. Any other topic that has an acknowledged message survives
    a crash, even if earlier writes to the disk failed, because a message cannot be found without its topic.
    """

    def __init__(
        self,
        configs: TopicConfigs,
        rules: TopicRules,
        *,
        clock: Callable[[], int],
        check_folder: Callable[[str, Iterable[str]], None],
    ) -> None:
        """Creates the table. `check_folder` raises IllegalMessage if a topic's folder conflicts with other topics' folders."""
        self.on_change: Callable[[str], None] = lambda topic: None
        """A function that is called with the topic after each change that the name servers need."""
        self._configs = configs
        self._rules = rules
        self._clock = clock
        self._check_folder = check_folder
        self._sendable: dict[str, TopicConfig] = {}
        self.has_changed = Alarm()
        """Wakes the task that calls `persist_changes` when there are unsaved changes."""
        self._unsaved: set[str] = set()
        """The topics whose settings have not been saved."""
        for config in _initial_topics(rules):
            if configs.get(config.topic_name) != config:
                self._put(config)
        self.system_topics = topics.SYSTEM_TOPICS | {config.topic_name for config in _initial_topics(rules)}

    @property
    def configs(self) -> TopicConfigs:
        """Returns the stored table of topics, which callers must not change."""
        return self._configs

    def get(self, topic: str) -> TopicConfig | None:
        """Returns the topic's settings, or None."""
        return self._configs.get(topic)

    def __iter__(self) -> Iterator[TopicConfig]:
        return iter(self._configs)

    def is_system_topic(self, topic: str) -> bool:
        """Returns True if clients may neither create nor delete the topic."""
        return topic in self.system_topics or topics.is_system_topic(topic)

    def existing(self, topic: str) -> TopicConfig:
        """Returns the topic's settings. Raises RequestRefused if the topic does not exist."""
        config = self._configs.get(topic)
        if config is None:
            raise RequestRefused(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist, apply first please! {FURTHER_DETAILS}")
        return config

    def for_sending(self, topic: str, default_topic: str, queue_nums: int, unit_mode: bool = False) -> TopicConfig:
        """Returns the settings of a message's topic. Creates a missing topic with the settings of the default topic.

        The settings are on disk when the method returns. Raises RequestRefused if the topic does not exist and cannot be
        created, or does not accept messages. Raises StoreUnwritable if the disk fails.
        """
        config = self._sendable.get(topic)
        if config is None:
            refuse_illegal_topic(topic)
            if topic in topics.NOT_ALLOWED_SEND_TOPICS:
                raise RequestRefused(ResponseCode.NO_PERMISSION, f"Sending message to topic[{topic}] is forbidden.")
            self._refuse_folder(topic)
            config = self._configs.get(topic) or self._create_for_send(topic, default_topic, queue_nums, unit_mode)
            if not permissions.is_writeable(config.perm):
                raise RequestRefused(ResponseCode.NO_PERMISSION, f"the topic[{topic}] sending message is forbidden")
            self._save(topic)
            self._sendable[topic] = config
        return config

    def existing_queue(self, topic: bytes, queue_id: int) -> int:
        """Returns `queue_id`, or another queue if the topic now has fewer queues than when the message was accepted."""
        config = self._configs.get(topic.decode())
        if config is None or config.write_queue_nums <= 0 or queue_id < max(config.read_queue_nums, config.write_queue_nums):
            return queue_id
        return queue_id % config.write_queue_nums

    def internal(self, topic: str, queue_nums: int) -> TopicConfig:
        """Returns a topic that only the broker reads. Creates the topic if it is missing. `persist_changes` saves the topic."""
        return self._configs.get(topic) or self._make_internal(topic, queue_nums)

    def read_by_others(self, topic: str, queue_nums: int) -> TopicConfig:
        """Returns a system topic that clients may read. Creates the topic if it is missing (createTopicInSendMessageBackMethod).

        The settings are on disk when the method returns, so that dead letters can be found after a crash. Raises StoreUnwritable.
        """
        config = self.internal(topic, queue_nums)
        self._save(topic)
        return config

    def retry_topic(self, group: str, queue_nums: int, *, unit_mode: bool = False) -> TopicConfig:
        """Returns the topic in which the group's messages wait for a retry. Creates the topic if it is missing.

        Raises RequestRefused if the file system cannot store the topic's folder.
        """
        topic = topics.retry_topic(group)
        config = self._configs.get(topic)
        if config is None:
            self._refuse_folder(topic)
            flag = permissions.UNIT_SUBSCRIPTION if unit_mode else 0
            config = self._make_internal(topic, queue_nums, topic_sys_flag=flag)
        return config

    def dead_letter_topic(self, group: str) -> TopicConfig:
        """Returns the topic for the group's messages that used up all attempts. Creates the topic if it is missing.

        Raises StoreUnwritable.
        """
        return self.read_by_others(topics.dead_letter_topic(group), 1)

    def update(self, config: TopicConfig) -> None:
        """Creates or changes the topic for an operator or client. The change is on disk when the method returns.

        Raises RequestRefused if the name is illegal or reserved, if the topic's folder conflicts with another topic, or if
        the maximum number of topics is reached. Raises OSError if the change cannot be saved.
        """
        refuse_illegal_topic(config.topic_name)
        self._refuse_system_topic(config.topic_name)
        self._refuse_if_full(config.topic_name)
        self._refuse_folder(config.topic_name)
        self._put(config)
        self.persist_changes()

    def delete(self, topic: str) -> None:
        """Deletes the topic. The change is on disk when the method returns.

        Raises RequestRefused for an illegal name or a system topic, and OSError if the change cannot be saved.
        """
        refuse_illegal_topic(topic)
        self._refuse_system_topic(topic)
        if self._configs.remove(topic, self._clock()):
            self._changed(topic)
            self.persist_changes()

    def set_order_topics(self, order_topics: set[str]) -> None:
        """Marks the topics in `order_topics` as ordered, and all other topics as not ordered (updateOrderTopicConfig)."""
        for config in self._configs:
            if config.order != (config.topic_name in order_topics):
                self._put(replace(config, order=not config.order))

    def persist_changes(self) -> None:
        """Saves changes to disk. If this raises OSError, the next call retries."""
        if self._unsaved:
            self._configs.persist()
            self._unsaved.clear()

    def _save(self, topic: str) -> None:
        if topic in self._unsaved:
            try:
                self.persist_changes()
            except OSError as error:
                raise StoreUnwritable(f"cannot store the settings of topic {topic}: {error}") from error

    def _create_for_send(self, topic: str, default_topic: str, queue_nums: int, unit_mode: bool) -> TopicConfig:
        model = self._configs.get(default_topic)
        if default_topic == topics.AUTO_CREATE_TOPIC and not self._rules.auto_create_topic_enable:
            model = None
        if model is not None and permissions.is_inherited(model.perm):
            self._refuse_if_full(topic)
            count = max(min(queue_nums, model.write_queue_nums), 0)
            config = replace(model, topic_name=topic, read_queue_nums=count, write_queue_nums=count)
            flag = permissions.UNIT if unit_mode else 0
            self._put(replace(config, perm=model.perm & ~permissions.INHERIT, topic_sys_flag=flag, order=False))
        elif topic.startswith(topics.RETRY_PREFIX):
            self._refuse_if_full(topic)
            self._make_internal(topic, 1)
        return self.existing(topic)

    def _make_internal(self, topic: str, queue_nums: int, *, topic_sys_flag: int = 0) -> TopicConfig:
        config = TopicConfig(topic, queue_nums, queue_nums, topic_sys_flag=topic_sys_flag)
        self._put(config)
        return config

    def _refuse_if_full(self, topic: str) -> None:
        if topic not in self._configs and len(self._configs) >= self._rules.max_topics:
            count, limit = len(self._configs), self._rules.max_topics
            remark = f"cannot create topic {topic}: {count} topics exist, maxTopicNum={limit}"
            raise RequestRefused(ResponseCode.SYSTEM_BUSY, remark)

    def _refuse_folder(self, topic: str) -> None:
        refuse_unless(lambda name: self._check_folder(name, (config.topic_name for config in self._configs)), topic)

    def _refuse_system_topic(self, topic: str) -> None:
        if self.is_system_topic(topic):
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"The topic[{topic}] is conflict with system topic.")

    def _put(self, config: TopicConfig) -> None:
        self._configs.put(config, self._clock())
        self._changed(config.topic_name)

    def _changed(self, topic: str) -> None:
        self._sendable.clear()
        self._unsaved.add(topic)
        self.has_changed.ring()
        self.on_change(topic)


def _initial_topics(rules: TopicRules) -> Iterator[TopicConfig]:
    """Yields the initial topics, which are those of RocketMQ 4.9.7."""
    read_write = permissions.READ_AND_WRITE
    yield TopicConfig(topics.SELF_TEST_TOPIC, 1, 1)
    if rules.auto_create_topic_enable:
        count = rules.default_topic_queue_nums
        yield TopicConfig(topics.AUTO_CREATE_TOPIC, count, count, read_write | permissions.INHERIT)
    yield TopicConfig(topics.BENCHMARK_TOPIC, BENCHMARK_TOPIC_QUEUES, BENCHMARK_TOPIC_QUEUES)
    yield TopicConfig(rules.cluster, perm=permissions.INHERIT | (read_write if rules.cluster_topic_enable else 0))
    yield TopicConfig(rules.broker_name, 1, 1, permissions.INHERIT | (read_write if rules.broker_topic_enable else 0))
    yield TopicConfig(topics.OFFSET_MOVED_EVENT_TOPIC, 1, 1)
    yield TopicConfig(topics.SCHEDULE_TOPIC, SCHEDULE_TOPIC_QUEUES, SCHEDULE_TOPIC_QUEUES)
    if rules.trace_topic is not None:
        yield TopicConfig(rules.trace_topic, 1, 1)
    yield TopicConfig(topics.reply_topic(rules.cluster), 1, 1)
