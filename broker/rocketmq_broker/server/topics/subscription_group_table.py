"""Manages the settings of consumer groups, which are created at the first use of a group (SubscriptionGroupManager)."""

from collections.abc import Callable
from typing import Final

from rocketmq_broker.message import topics
from rocketmq_broker.message.configs import SubscriptionGroupConfig
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.remoting.alarm import Alarm
from rocketmq_broker.remoting.dispatcher import RequestRefused
from rocketmq_broker.server.topics.names import refuse_as_consumer, refuse_illegal_consumer_group
from rocketmq_broker.store import SubscriptionGroups

INITIAL_GROUPS: Final = (
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
)


class SubscriptionGroupTable:
    """The settings of all consumer groups.

    `update` and `delete` save their changes to disk. Call `persist_changes` to save all other changes.
    """

    def __init__(self, groups: SubscriptionGroups, *, auto_create: bool, clock: Callable[[], int], max_groups: int) -> None:
        """Creates a table. `max_groups` is the maximum number of groups that clients and operators can create."""
        self._groups = groups
        self._auto_create = auto_create
        self._clock = clock
        self._max_groups = max_groups
        self.has_changed = Alarm()
        """Wakes the task that calls `persist_changes` when there are unsaved changes."""
        self._is_changed = False
        for name in INITIAL_GROUPS:
            if name not in groups:
                self._put(SubscriptionGroupConfig(name))

    @property
    def groups(self) -> SubscriptionGroups:
        """Returns the stored table of groups, which callers must not change."""
        return self._groups

    def find(self, group: str) -> SubscriptionGroupConfig | None:
        """Returns the group's settings, or None. Creates a missing group with default settings if automatic creation is allowed.

        Raises RequestRefused if the maximum number of groups is reached.
        """
        if len(group) > topics.MAX_CONSUMER_GROUP_LENGTH:  # tables written by RocketMQ may contain longer names
            return None
        config = self._groups.get(group)
        if config is None and (self._auto_create or topics.is_system_group(group)) and topics.is_group(group):
            self._refuse_if_full(group)
            config = SubscriptionGroupConfig(group)
            self._put(config)
        return config

    def for_consuming(self, group: str) -> SubscriptionGroupConfig:
        """Returns the group's settings. Creates a missing group with default settings if automatic creation is allowed.

        Raises RequestRefused if the group does not exist and cannot be created.
        """
        config = self.find(group)
        if config is None:
            refuse_illegal_consumer_group(group)
            raise _missing(group)
        return config

    def refuse_unless_possible(self, group: str, unknown_groups: int) -> None:
        """Raises RequestRefused if the group does not exist and may not be created automatically.

        `unknown_groups` is the number of groups that have offsets, with or without settings. A group is also refused if this
        number has reached the maximum number of groups.
        """
        if group in self._groups:
            return
        refuse_illegal_consumer_group(group)
        if not self._auto_create and not topics.is_system_group(group):
            raise _missing(group)
        self._refuse_another(group, unknown_groups)

    def update(self, config: SubscriptionGroupConfig) -> None:
        """Creates or changes the group for an operator. The change is on disk when the method returns.

        Raises RequestRefused if the name is illegal or used by the broker, or if the maximum number of groups is reached.
        Raises OSError if the change cannot be saved.
        """
        refuse_as_consumer(config.group_name)
        self._refuse_if_full(config.group_name)
        self._put(config)
        self.persist_changes()

    def delete(self, group: str) -> None:
        """Deletes the group. The change is on disk when the method returns.

        Raises RequestRefused if the broker uses the group, and OSError if the change cannot be saved.
        """
        if topics.is_system_group(group):
            refuse_as_consumer(group)
        if self._groups.remove(group, self._clock()):
            self._is_changed = True
            self.has_changed.ring()
            self.persist_changes()

    def persist_changes(self) -> None:
        """Saves changes to disk. If this raises OSError, the next call retries."""
        if self._is_changed:
            self._groups.persist()
            self._is_changed = False

    def _refuse_if_full(self, group: str) -> None:
        if group not in self._groups:
            self._refuse_another(group, len(self._groups))

    def _refuse_another(self, group: str, count: int) -> None:
        if count >= self._max_groups:
            remark = f"cannot create group {group}: {count} groups exist, maxSubscriptionGroupNum={self._max_groups}"
            raise RequestRefused(ResponseCode.SYSTEM_BUSY, remark)

    def _put(self, config: SubscriptionGroupConfig) -> None:
        self._groups.put(config, self._clock())
        self._is_changed = True
        self.has_changed.ring()


def _missing(group: str) -> RequestRefused:
    return RequestRefused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"subscription group [{group}] does not exist")
