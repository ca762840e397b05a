"""Stores the request mode (pull or pop) of each group for each topic in messageRequestMode.json (RocketMQ's
MessageRequestModeManager)."""

from typing import Any, Final

from rocketmq_broker.message import topics
from rocketmq_broker.protocol.bodies.pop import MessageRequestMode, SetMessageRequestModeRequestBody
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.remoting.dispatcher import RequestRefused
from rocketmq_broker.server.topics.subscription_group_table import SubscriptionGroupTable
from rocketmq_broker.server.topics.topic_table import TopicTable
from rocketmq_broker.store.tables.config_file import ConfigFile

FILE_NAME: Final = "messageRequestMode.json"
_MEMBER: Final = "messageRequestModeMap"
MAX_MODES: Final = 10_000
"""The maximum number of stored modes, one for each group and topic. Each change rewrites the whole file."""


class RequestModes:
    """The request modes that operators have set. The default is pull, as in RocketMQ."""

    def __init__(self, file: ConfigFile, topic_table: TopicTable, subscription_groups: SubscriptionGroupTable) -> None:
        """Reads the stored modes. Raises DamagedStore."""
        self._file = file
        self._topics = topic_table
        self._groups = subscription_groups
        self._modes = file.read(_parse)

    def get(self, topic: str, group: str) -> SetMessageRequestModeRequestBody:
        """Returns the mode of a group for a topic. The mode of a retry topic is always pull."""
        known = None if topic.startswith(topics.RETRY_PREFIX) else self._modes.get((topic, group))
        return known or SetMessageRequestModeRequestBody(topic, group)

    def set(self, mode: SetMessageRequestModeRequestBody) -> None:
        """Sets a mode and writes it to disk. Raises RequestRefused or OSError."""
        if mode.topic.startswith(topics.RETRY_PREFIX):
            raise RequestRefused(ResponseCode.NO_PERMISSION, "retry topic is not allowed to set mode")
        self._topics.existing(mode.topic)
        self._groups.for_consuming(mode.consumer_group)
        key = mode.topic, mode.consumer_group
        if key not in self._modes and len(self._modes) >= MAX_MODES:
            raise RequestRefused(ResponseCode.SYSTEM_BUSY, f"too many request modes: {len(self._modes)}, limit {MAX_MODES}")
        changed = {**self._modes, key: mode}
        self._file.write(_as_json(changed))
        self._modes = changed


_Modes = dict[tuple[str, str], SetMessageRequestModeRequestBody]


def _as_json(modes: _Modes) -> dict[str, Any]:
    table: dict[str, dict[str, Any]] = {}
    for (topic, group), mode in sorted(modes.items()):
        table.setdefault(topic, {})[group] = {
            "consumerGroup": group,
            "mode": mode.mode.value,
            "popShareQueueNum": mode.pop_share_queue_num,
            "topic": topic,
        }
    return {_MEMBER: table}


def _parse(content: dict[str, Any]) -> _Modes:
    return {
        (topic, group): SetMessageRequestModeRequestBody(
            topic, group, MessageRequestMode(mode.get("mode", "PULL")), int(mode.get("popShareQueueNum", 0))
        )
        for topic, groups in (content.get(_MEMBER) or {}).items()
        for group, mode in groups.items()
    }
