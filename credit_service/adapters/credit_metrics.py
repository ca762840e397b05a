"""Prometheus metrics of the ledger and of dead letters."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from credit_service.adapters.ledger import Ledger
from service_runtime.database.database_errors import DatabaseFailure
from service_runtime.messaging.consumer_thread import ConsumerThread


@dataclass(frozen=True, slots=True)
class CreditCollector(Collector):
    """Collects the metrics at each scrape. Metrics are missing while the database or the broker does not respond."""

    ledger: Ledger
    consumer: ConsumerThread

    def collect(self) -> Iterable[Metric]:
        """Yields the metrics with their current values."""
        with suppress(DatabaseFailure):
            yield CounterMetricFamily("credit_entries", "Entries of the ledger.", value=self.ledger.last_written())
        dead = self.consumer.count_dead_letters()
        if dead is not None:
            yield GaugeMetricFamily("credit_dead_letters", "Dead letters that have not been handled.", value=dead)
        queues = self.consumer.progress()
        if queues is not None:
            waiting = sum(queue.unacknowledged for queue in queues)
            yield GaugeMetricFamily(
                "credit_unacknowledged_messages", "Messages that were pulled but not acknowledged.", value=waiting
            )
