"""Selects the transaction listener of a topic."""

from collections.abc import Mapping

from rocketmq_broker.client.checks.listener_check import check_transaction_listener
from rocketmq_broker.client.checks.settings_check import check_topic
from rocketmq_broker.client.errors import IllegalConfiguration
from rocketmq_broker.client.listeners import TransactionListener, TransactionListeners
from rocketmq_broker.client.transaction.local_transaction import LocalTransaction

ANY_TOPIC = "*"


class TopicListeners:
    """The transaction listeners of one producer, keyed by topic."""

    def __init__(self, producer: str, given: TransactionListeners) -> None:
        """`producer` is the producer's name in error messages. A mapping of listeners is copied."""
        self._producer = producer
        self._by_topic: Mapping[str, TransactionListener] = dict(given) if isinstance(given, Mapping) else {ANY_TOPIC: given}

    def check(self) -> None:
        """Raises IllegalConfiguration unless there is a listener and each one is a valid TransactionListener."""
        if not self._by_topic:
            raise IllegalConfiguration(f"{self._producer} has no transaction listener: pass one for each topic, or one for '*'")
        for topic, listener in self._by_topic.items():
            who = self._producer
            if topic != ANY_TOPIC:
                check_topic(topic)
                who = f"{self._producer}, topic {topic}"
            if isinstance(listener, LocalTransaction) and not hasattr(listener, "check_local_transaction"):
                raise IllegalConfiguration(
                    f"{who}: the transaction listener {listener.__name__} does not answer check-backs: "
                    f"decorate a function with @{listener.__name__}.answers_check_backs"
                )
            check_transaction_listener(who, listener)

    def of(self, topic: str) -> TransactionListener | None:
        """Returns the listener for messages to the topic, or None."""
        return self._by_topic.get(topic, self._by_topic.get(ANY_TOPIC))

    def wanted(self, topic: str) -> TransactionListener:
        """Returns the listener for messages to the topic. Raises IllegalConfiguration if the topic has no listener."""
        listener = self.of(topic)
        if listener is None:
            raise IllegalConfiguration(f"{self._producer} has no transaction listener for topic {topic}, only for: {self}")
        return listener

    def __str__(self) -> str:
        """Returns the topics, joined by commas."""
        return ", ".join(self._by_topic) or "none"
