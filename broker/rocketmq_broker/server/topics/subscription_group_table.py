"""The consumer groups' settings, created at a group's first use (RocketMQ's SubscriptionGroupManager)."""

from __future__ import annotations

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
    """All groups. An operator's change is on disk when the method returns; others follow with `persist_changes`."""

    def __init__(
        self, groups: SubscriptionGroups, *, auto_create: bool, clock: Callable[[], int], most_groups: int = 5_000
    ) -> None:
        """`most_groups` bounds the groups that clients and operators create."""
        self._groups = groups
        self._auto_create = auto_create
        self._clock = clock
        self._most_groups = most_groups
        self.has_changed = Alarm()
        """Rings when there is something for `persist_changes` to do."""
        self._is_changed = False
        for name in INITIAL_GROUPS:
            if name not in groups:
                self._put(SubscriptionGroupConfig(name))

    @property
    def groups(self) -> SubscriptionGroups:
        """The table itself; do not change it."""
        return self._groups

    def find(self, group: str) -> SubscriptionGroupConfig | None:
        """Returns the group's settings, created with defaults if allowed; else None.

        Raises RequestRefused if there are too many groups.
        """
        if len(group) > topics.MAX_CONSUMER_GROUP_LENGTH:  # a table of RocketMQ's may hold longer names
            return None
        config = self._groups.get(group)
        if config is None and (self._auto_create or topics.is_system_group(group)) and topics.is_group(group):
            self._refuse_if_full(group)
            config = SubscriptionGroupConfig(group)
            self._put(config)
        return config

    def for_consuming(self, group: str) -> SubscriptionGroupConfig:
        """Returns the group's settings. Raises RequestRefused if the group does not exist, or cannot."""
        config = self.find(group)
        if config is None:
            refuse_illegal_consumer_group(group)
            raise RequestRefused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"subscription group [{group}] does not exist")
        return config

    def refuse_unless_possible(self, group: str, unknown_groups: int) -> None:
        """Raises RequestRefused if the group does not exist and may not be created automatically.

        `unknown_groups` is the number of groups known elsewhere by name only: they are bounded as groups are.
        """
        if group in self._groups:
            return
        refuse_illegal_consumer_group(group)
        if not self._auto_create and not topics.is_system_group(group):
            raise RequestRefused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"subscription group [{group}] does not exist")
        if unknown_groups >= self._most_groups:
            remark = (
                f"no group {group}: the broker knows {unknown_groups} groups, and maxSubscriptionGroupNum={self._most_groups}"
            )
            raise RequestRefused(ResponseCode.SYSTEM_BUSY, remark)

    def update(self, config: SubscriptionGroupConfig) -> None:
        """Creates or changes the group for an operator. Raises RequestRefused, OSError."""
        refuse_as_consumer(config.group_name)
        self._refuse_if_full(config.group_name)
        self._put(config)
        self.persist_changes()

    def delete(self, group: str) -> None:
        """Deletes the group. Raises RequestRefused, OSError."""
        if topics.is_system_group(group):
            refuse_as_consumer(group)
        if self._groups.remove(group, self._clock()):
            self._is_changed = True
            self.has_changed.ring()
            self.persist_changes()

    def persist_changes(self) -> None:
        """Writes changes to the disk. Raises OSError; then the next call tries again."""
        if self._is_changed:
            self._groups.persist()
            self._is_changed = False

    def _refuse_if_full(self, group: str) -> None:
        if group not in self._groups and len(self._groups) >= self._most_groups:
            count, most = len(self._groups), self._most_groups
            remark = f"no group {group}: the broker has {count} consumer groups, and maxSubscriptionGroupNum={most}"
            raise RequestRefused(ResponseCode.SYSTEM_BUSY, remark)

    def _put(self, config: SubscriptionGroupConfig) -> None:
        self._groups.put(config, self._clock())
        self._is_changed = True
        self.has_changed.ring()
