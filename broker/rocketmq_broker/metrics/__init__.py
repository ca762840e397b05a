"""The broker's metrics for Prometheus, under the names of RocketMQ 5 where it has one (BrokerMetricsConstant).

Nothing here runs while messages pass: the broker counts in plain integers, and a scrape reads them in another thread.
"""

from rocketmq_broker.metrics.collector import BrokerCollector
from rocketmq_broker.metrics.server import MetricsServer
from rocketmq_broker.metrics.sources import MetricsSources

__all__ = ["BrokerCollector", "MetricsServer", "MetricsSources"]
