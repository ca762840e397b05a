"""Counts the outcomes of local transactions and check-backs, for Prometheus."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter

from rocketmq_broker.client import LocalTransactionState, TransactionListener
from rocketmq_broker.message import Message, MessageExt


class CountedListener:
    """A TransactionListener that counts the answers of another, synchronous one."""

    def __init__(self, listener: TransactionListener, kind: str, local: Counter, checks: Counter) -> None:
        """`kind` is the topic; the counters have the labels kind and decision."""
        self._listener = listener
        self._kind = kind
        self._local = local
        self._checks = checks

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        """Runs the listener, and counts its answer, or its exception as `failed`."""
        with self._local.labels(self._kind, "failed").count_exceptions():
            state = self._listener.execute_local_transaction(message, arg)
            assert isinstance(state, LocalTransactionState)
        self._local.labels(self._kind, state.name).inc()
        return state

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Asks the listener, and counts its answer, or its exception as `failed`."""
        with self._checks.labels(self._kind, "failed").count_exceptions():
            state = self._listener.check_local_transaction(message)
            assert isinstance(state, LocalTransactionState)
        self._checks.labels(self._kind, state.name).inc()
        return state


def counted(listeners: Mapping[str, TransactionListener], registry: CollectorRegistry) -> Mapping[str, TransactionListener]:
    """Returns the listeners, each counted under its topic."""
    labels = ["topic", "decision"]
    local = Counter("order_local_transactions", "Local transactions, by what the broker was told.", labels, registry=registry)
    checks = Counter("order_check_backs", "Check-backs, by what the broker was answered.", labels, registry=registry)
    return {topic: CountedListener(listener, topic, local, checks) for topic, listener in listeners.items()}
