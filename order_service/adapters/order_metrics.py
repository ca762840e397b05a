"""Prometheus counters of local transactions and check-backs."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter

from rocketmq_broker.client import LocalTransactionState, TransactionListener
from rocketmq_broker.message import Message, MessageExt


class CountedListener:
    """Wraps a synchronous TransactionListener and counts its answers."""

    def __init__(self, listener: TransactionListener, topic: str, local: Counter, checks: Counter) -> None:
        """`topic` is the value of the counters' first label. The decision is the value of the second one."""
        self._listener = listener
        self._topic = topic
        self._local = local
        self._checks = checks

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        """Runs the listener and counts its decision. An exception counts as `failed`."""
        with self._local.labels(self._topic, "failed").count_exceptions():
            state = self._listener.execute_local_transaction(message, arg)
            assert isinstance(state, LocalTransactionState)
        self._local.labels(self._topic, state.name).inc()
        return state

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Calls the listener and counts its answer. An exception counts as `failed`."""
        with self._checks.labels(self._topic, "failed").count_exceptions():
            state = self._listener.check_local_transaction(message)
            assert isinstance(state, LocalTransactionState)
        self._checks.labels(self._topic, state.name).inc()
        return state


def counted(listeners: Mapping[str, TransactionListener], registry: CollectorRegistry) -> Mapping[str, TransactionListener]:
    """Returns the listeners with counters. Each is counted under its topic."""
    labels = ["topic", "decision"]
    local = Counter(
        "order_local_transactions", "Local transactions, by the decision sent to the broker.", labels, registry=registry
    )
    checks = Counter("order_check_backs", "Check-backs, by the answer sent to the broker.", labels, registry=registry)
    return {topic: CountedListener(listener, topic, local, checks) for topic, listener in listeners.items()}
