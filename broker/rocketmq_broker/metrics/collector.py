"""The Prometheus collector of all metrics."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.registry import Collector

from rocketmq_broker.metrics.families import Families
from rocketmq_broker.metrics.messages import client_metrics, message_metrics
from rocketmq_broker.metrics.sources import MetricsSources
from rocketmq_broker.metrics.storage import storage_metrics
from rocketmq_broker.metrics.transactions import transaction_metrics


class BrokerCollector(Collector):
    """Reads the broker's counters at each scrape. It keeps no data between scrapes."""

    def __init__(self, sources: MetricsSources) -> None:
        self._sources = sources
        self._families = Families(sources.labels)

    def collect(self) -> Iterator[Metric]:
        """Yields every metric family."""
        for metrics in (transaction_metrics, message_metrics, client_metrics, storage_metrics):
            yield from metrics(self._families, self._sources)
