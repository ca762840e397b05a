"""Builds metric families with the common labels of the broker's metrics."""

from collections.abc import Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from rocketmq_broker.server.statistics.histogram import Histogram

Labels = tuple[str, ...]


class Families:
    """Builds metric families. Each metric has the family's labels, followed by the common labels."""

    def __init__(self, common: Mapping[str, str]) -> None:
        self._names = tuple(common)
        self._values = tuple(common.values())

    def gauge(self, name: str, text: str, value: float) -> GaugeMetricFamily:
        """Returns a gauge with a single value."""
        return self.gauges(name, text, (), [((), value)])

    def gauges(self, name: str, text: str, names: Labels, values: Iterable[tuple[Labels, float]]) -> GaugeMetricFamily:
        """Returns a gauge with a value for each combination of labels."""
        family = GaugeMetricFamily(name, text, labels=names + self._names)
        for labels, value in values:
            family.add_metric(labels + self._values, value)
        return family

    def counter(self, name: str, text: str, value: float) -> CounterMetricFamily:
        """Returns a counter with a single value. `name` must end with `_total`."""
        return self.counters(name, text, (), [((), value)])

    def counters(self, name: str, text: str, names: Labels, values: Iterable[tuple[Labels, float]]) -> CounterMetricFamily:
        """Returns a counter with a value for each combination of labels."""
        family = CounterMetricFamily(name, text, labels=names + self._names)
        for labels, value in values:
            family.add_metric(labels + self._values, value)
        return family

    def histograms(
        self, name: str, text: str, names: Labels, values: Iterable[tuple[Labels, Histogram]]
    ) -> HistogramMetricFamily:
        """Returns a histogram for each combination of labels."""
        family = HistogramMetricFamily(name, text, labels=names + self._names)
        for labels, histogram in values:
            family.add_metric(labels + self._values, histogram.cumulative(), histogram.total)
        return family


def boolean(value: bool) -> str:
    """Returns a boolean as the value of a label: "true" or "false"."""
    return "true" if value else "false"
