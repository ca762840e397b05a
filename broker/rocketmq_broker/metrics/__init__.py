"""The broker's metrics for Prometheus. Metrics that RocketMQ 5 also provides have the same names (BrokerMetricsConstant).

The broker counts in plain integers. A scrape reads them in another thread, so that metrics do not delay messages.
"""

from rocketmq_broker.metrics.collector import BrokerCollector
from rocketmq_broker.metrics.server import MetricsServer
from rocketmq_broker.metrics.sources import MetricsSources

__all__ = ["BrokerCollector", "MetricsServer", "MetricsSources"]
