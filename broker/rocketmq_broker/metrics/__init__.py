"""The broker's metrics for Prometheus, with the names of RocketMQ 5 where it has the metric (BrokerMetricsConstant).

The broker counts in plain integers. A scrape reads them in another thread, so that metrics do not slow messages down.
"""

from rocketmq_broker.metrics.collector import BrokerCollector
from rocketmq_broker.metrics.server import MetricsServer
from rocketmq_broker.metrics.sources import MetricsSources

__all__ = ["BrokerCollector", "MetricsServer", "MetricsSources"]
