"""Prometheus metrics of the outcomes of credits and reversals, of held orders (kept for a retry), and of dead letters."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from credit_service.domain.credit import Credit
from credit_service.service_layer.crediting import Credited
from credit_service.service_layer.order_listener import BatchCrediting
from rocketmq_broker.client import ConsumeContext
from service_runtime.failing.holds import Holds
from service_runtime.messaging.consumer_thread import ConsumerThread


class CountedCrediting:
    """Wraps a `BatchCrediting` and counts its outcomes."""

    def __init__(self, crediting: BatchCrediting, registry: CollectorRegistry) -> None:
        """Wraps `crediting`, and registers the counter in `registry`."""
        self._crediting = crediting
        self._entries = Counter("credit_entries", "Entries, by outcome.", ["kind", "outcome"], registry=registry)

    def credit(self, credits: Sequence[Credit], context: ConsumeContext) -> list[Credited]:
        """Writes the credits and counts the outcomes."""
        outcomes = self._crediting.credit(credits, context)
        for credit, outcome in zip(credits, outcomes, strict=True):
            self._entries.labels(credit.kind.value, "LATER" if outcome is None else outcome.value).inc()
        return outcomes


@dataclass(frozen=True, slots=True)
class HoldsCollector(Collector):
    """Collects the numbers of held orders, unacknowledged messages and dead letters at each scrape."""

    holds: Holds
    consumer: ConsumerThread

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yields a gauge for each of these numbers."""
        holding = self.holds.state()
        yield GaugeMetricFamily("credit_held_orders", "Held orders.", value=0 if holding is None else holding.orders)
        yield GaugeMetricFamily(
            "credit_held_seconds",
            "Seconds for which at least one order has been held.",
            value=holding.held_for_s if holding else 0,
        )
        dead = self.consumer.count_dead_letters()
        if dead is not None:
            yield GaugeMetricFamily("credit_dead_letters", "Dead letters that have not been handled.", value=dead)
        queues = self.consumer.progress()
        if queues is not None:
            waiting = sum(queue.unacknowledged for queue in queues)
            yield GaugeMetricFamily(
                "credit_unacknowledged_messages", "Messages that were pulled but not acknowledged.", value=waiting
            )
