"""A namespace: a prefix that a client adds to its topics and groups, and removes again (RocketMQ's NamespaceUtil)."""

from dataclasses import replace
from typing import Final, TypeVar

from rocketmq_broker.client.errors import IllegalConfiguration
from rocketmq_broker.message import Message, MessageExt, MessageQueue, properties, topics
from rocketmq_broker.message.text.mistakes import kind_of

_SEPARATOR: Final = "%"
_KINDS: Final = (topics.RETRY_PREFIX, topics.DEAD_LETTER_PREFIX)

M = TypeVar("M", bound=Message)


class Namespace:
    """Wraps names that a program uses, and unwraps names that brokers use. A namespace without a name changes nothing.

        orders          NAME%orders
        %RETRY%group    %RETRY%NAME%group
        %DLQ%group      %DLQ%NAME%group

    System topics and groups, and names that are already wrapped, are not changed.
    """

    __slots__ = ("_prefix", "name")

    def __init__(self, name: str | None = None) -> None:
        """Creates a namespace. Raises IllegalConfiguration if `name` is not a string, or contains `%`."""
        if name is not None and not isinstance(name, str):
            raise IllegalConfiguration(f"namespace must be a str, not {kind_of(name)}")
        if name and _SEPARATOR in name:
            raise IllegalConfiguration(f"namespace {name!r} must not contain {_SEPARATOR}")
        self.name = name or ""
        self._prefix = f"{name}{_SEPARATOR}" if name else ""

    def wrap(self, name: str) -> str:
        """Returns the brokers' name for a topic or group. Returns a value that is not a str unchanged, for a later check."""
        if not self._prefix or not isinstance(name, str) or topics.is_system_topic(name) or topics.is_system_group(name):
            return name
        kind, rest = _split(name)
        return name if rest.startswith(self._prefix) else f"{kind}{self._prefix}{rest}"

    def unwrap(self, name: str) -> str:
        """Returns the program's name for a topic or group."""
        kind, rest = _split(name)
        return f"{kind}{rest.removeprefix(self._prefix)}"

    def wrap_message(self, message: M) -> M:
        """Returns the message with its topic wrapped. Returns a reply unchanged, because its topic belongs to the cluster."""
        if (
            not self._prefix
            or not isinstance(message, Message)
            or message.properties.get(properties.MESSAGE_TYPE) == properties.REPLY
        ):
            return message
        return replace(message, topic=self.wrap(message.topic)).with_properties({properties.INSTANCE_ID: self.name})

    def unwrap_message(self, message: M) -> M:
        """Returns a received message with its topic unwrapped."""
        return replace(message, topic=self.unwrap(message.topic)) if self._prefix else message

    def unwrap_messages(self, messages: list[MessageExt]) -> list[MessageExt]:
        """Returns received messages with their topics unwrapped."""
        return [self.unwrap_message(message) for message in messages] if self._prefix else messages

    def wrap_queue(self, queue: MessageQueue) -> MessageQueue:
        """Returns the queue with its topic wrapped."""
        return replace(queue, topic=self.wrap(queue.topic)) if self._prefix else queue

    def unwrap_queue(self, queue: MessageQueue) -> MessageQueue:
        """Returns the queue with its topic unwrapped."""
        return replace(queue, topic=self.unwrap(queue.topic)) if self._prefix else queue


NO_NAMESPACE: Final = Namespace()


def _split(name: str) -> tuple[str, str]:
    """Returns `%RETRY%` or `%DLQ%`, or an empty string, and the rest of the name."""
    for kind in _KINDS:
        if name.startswith(kind):
            return kind, name[len(kind) :]
    return "", name
