"""Prometheus counters of local transactions and check-backs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter

from rocketmq_broker.client import LocalTransactionState, TransactionListener
from rocketmq_broker.message import Message, MessageExt


@dataclass(frozen=True, slots=True)
class CountedListener:
    """Wraps a synchronous TransactionListener and counts its decisions for each topic.

    An exception counts as `failed`.
    """

    listener: TransactionListener
    topic: str
    local: Counter
    checks: Counter

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        """Runs the listener and counts its decision."""
        return self._counted(self.local, lambda: self.listener.execute_local_transaction(message, arg))

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Runs the listener and counts its decision."""
        return self._counted(self.checks, lambda: self.listener.check_local_transaction(message))

    def _counted(self, counter: Counter, decide: Callable[[], object]) -> LocalTransactionState:
        with counter.labels(self.topic, "failed").count_exceptions():
            state = decide()
            assert isinstance(state, LocalTransactionState)
        counter.labels(self.topic, state.name).inc()
        return state


def counted(listeners: Mapping[str, TransactionListener], registry: CollectorRegistry) -> Mapping[str, TransactionListener]:
    """Returns the listeners with counters. Each is counted under its topic."""
    labels = ["topic", "decision"]
    local = Counter(
        "order_local_transactions", "Local transactions, by the decision sent to the broker.", labels, registry=registry
    )
    checks = Counter("order_check_backs", "Check-backs, by the answer sent to the broker.", labels, registry=registry)
    return {topic: CountedListener(listener, topic, local, checks) for topic, listener in listeners.items()}
