"""Prometheus metrics of an inbox."""

from collections.abc import Iterable
from dataclasses import dataclass

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from service_runtime.inbox.backlog import InboxBacklog


@dataclass(frozen=True, slots=True)
class InboxCollector(Collector):
    """Collects the numbers at each scrape. They are missing while the database does not answer."""

    backlog: InboxBacklog
    prefix: str
    """The first word of the metrics' names."""

    def collect(self) -> Iterable[Metric]:
        """Yields a metric for each number."""
        state = self.backlog.state()
        if state is None:
            return
        for name, text, value in (
            ("inbox_waiting", "Messages that wait to be processed.", state.waiting),
            ("inbox_failed", "Waiting messages that have failed.", state.failed),
            ("inbox_parked", "Messages that failed too often, and wait for a person.", state.parked),
            ("inbox_oldest_seconds", "Age of the oldest waiting message.", self.backlog.age_s(state.oldest_received_at_ms)),
        ):
            yield GaugeMetricFamily(f"{self.prefix}_{name}", text, value=value)
