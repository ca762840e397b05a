"""Sets up metrics, if they are enabled in the settings."""

from collections.abc import Callable

from rocketmq_broker.app.opened_store import OpenedStore
from rocketmq_broker.app.serving import Serving
from rocketmq_broker.config import BrokerSettings
from rocketmq_broker.metrics import BrokerCollector, MetricsServer, MetricsSources


def start_metrics(
    settings: BrokerSettings,
    store: OpenedStore,
    serving: Serving,
    count_connections: Callable[[], int],
    clock: Callable[[], int],
) -> MetricsServer:
    """Starts the HTTP server for the broker's metrics. Raises OSError if its port cannot be used."""
    sources = MetricsSources(
        labels=common_labels(settings),
        transactions=serving.transactions.messages,
        statistics=serving.context.statistics,
        group_commit=serving.context.group_commit,
        store=store.messages,
        consumer_offsets=store.consumer_offsets,
        parked=serving.parked,
        in_hand=serving.popping.in_hand,
        topic_table=serving.context.topic_table,
        subscription_groups=serving.context.subscription_groups,
        producer_groups=serving.context.clients.producer_groups,
        consumer_groups=serving.context.clients.consumer_groups,
        count_connections=count_connections,
        registered_with=lambda: serving.registration.registered_with,
        clock=clock,
    )
    return MetricsServer(settings.metrics_host, settings.metrics_prom_exporter_port, BrokerCollector(sources))


def common_labels(settings: BrokerSettings) -> dict[str, str]:
    """Returns the labels of all metrics: the labels in the settings, followed by the labels that RocketMQ 5 adds."""
    added = [pair.partition(":") for pair in settings.metrics_label.split(",") if pair]
    return {
        **{name: value for name, _, value in added},
        "cluster": settings.broker_cluster_name,
        "node_type": "broker",
        "node_id": settings.broker_name,
    }
