"""Each switch of `make up` turns on metrics or traces."""

from demo.up.observing import NOTHING_OBSERVED, Observing

SERVICES = {"order service": "http://127.0.0.1:8080"}


def test_without_a_switch_nothing_is_served_and_nothing_sent() -> None:
    assert (NOTHING_OBSERVED.broker_settings, NOTHING_OBSERVED.environment, NOTHING_OBSERVED.addresses(SERVICES)) == ({}, {}, {})


def test_metrics_are_those_of_broker_and_services_each_with_its_address() -> None:
    observing = Observing(metrics_port=5557)
    assert observing.broker_settings == {"metricsExporterType": "PROM", "metricsPromExporterPort": "5557"}
    assert observing.environment == {
        "ORDER_METRICS_ENABLED": "true",
        "CREDIT_METRICS_ENABLED": "true",
        "INVENTORY_METRICS_ENABLED": "true",
    }
    assert observing.addresses(SERVICES) == {
        "metrics of the broker": "http://127.0.0.1:5557/metrics",
        "metrics of the order service": "http://127.0.0.1:8080/metrics",
    }


def test_traces_are_a_variable_of_the_services() -> None:
    assert Observing(has_traces=True).environment == {"TRACES_ENABLED": "true"}
