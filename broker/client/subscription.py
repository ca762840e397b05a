"""Which messages of a topic a consumer wants: `*`, or tags joined by `||` (RocketMQ's FilterAPI)."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass

from broker.client.errors import IllegalConfiguration
from broker.message import MessageExt, tags
from broker.message.mistakes import kind_of
from broker.protocol.heartbeat import SubscriptionData

ALL = "*"
_JOINED_OTHERWISE = re.compile(r"[,;|]|\s(?:or|OR)\s")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Subscription:
    """A topic and the tags wanted of it; no tags means all messages."""

    topic: str
    expression: str
    tags: frozenset[str]
    version: int
    """Milliseconds since the epoch of the last change: brokers keep the newest."""

    @classmethod
    def parse(cls, topic: str, expression: str | None, version: int) -> Subscription:
        """Raises IllegalConfiguration if the expression names no tag at all."""
        if expression is not None and not isinstance(expression, str):
            raise IllegalConfiguration(
                f"subscription of {topic}: the expression is {kind_of(expression)}; a str is expected, as 'a || b'"
            )
        if not expression or expression.strip() == ALL:
            return cls(topic, ALL, frozenset(), version)
        wanted = frozenset(tag.strip() for tag in expression.split("||") if tag.strip())
        if not wanted:
            raise IllegalConfiguration(f"subscription of {topic}: {expression!r} names no tag; write '*', or tags as in 'a || b'")
        if len(wanted) == 1 and _JOINED_OTHERWISE.search(expression):
            logger.warning(
                "subscription of %s: %r is one tag; several tags are joined by '||', as in 'a || b'", topic, expression
            )
        return cls(topic, expression, wanted, version)

    def to_wire(self) -> SubscriptionData:
        """As a heartbeat tells brokers, with the hash codes they filter by."""
        wanted = sorted(self.tags)
        return SubscriptionData(
            topic=self.topic,
            sub_string=self.expression,
            tags_set=wanted,
            code_set=[tags.tags_code(tag) for tag in wanted],
            sub_version=self.version,
        )

    def matching(self, messages: Iterable[MessageExt]) -> list[MessageExt]:
        """The messages whose tag is really wanted: brokers compare hash codes only, and two tags may share one."""
        if not self.tags:
            return list(messages)
        return [message for message in messages if message.tags in self.tags]
