import pytest

from rocketmq_broker.app.metrics import common_labels
from rocketmq_broker.config import ConfigError, load_settings


def test_metrics_are_off_until_asked_for() -> None:
    assert load_settings(None).settings.metrics_exporter_type == "DISABLE"


def test_the_metrics_port_is_where_the_other_ports_are_unless_another_address_is_given() -> None:
    assert load_settings(None).settings.metrics_host == "127.0.0.1"
    assert load_settings(None, {"bindAddress": "0.0.0.0"}).settings.metrics_host == "0.0.0.0"
    given = {"bindAddress": "0.0.0.0", "metricsPromExporterHost": "127.0.0.1"}
    assert load_settings(None, given).settings.metrics_host == "127.0.0.1"


def test_labels_of_the_settings_come_beside_those_of_rocketmq() -> None:
    settings = load_settings(None, {"metricsLabel": "zone:a,rack:7", "brokerName": "broker-b"}).settings

    assert common_labels(settings) == {
        "zone": "a",
        "rack": "7",
        "cluster": "DefaultCluster",
        "node_type": "broker",
        "node_id": "broker-b",
    }


@pytest.mark.parametrize("label", ["zone", "zone:", "1zone:a", "zone:a,", "zone:a:b"])
def test_labels_that_prometheus_could_not_read_are_refused(label: str) -> None:
    with pytest.raises(ConfigError, match="metricsLabel"):
        load_settings(None, {"metricsLabel": label})


def test_an_exporter_that_this_broker_has_not_is_refused() -> None:
    with pytest.raises(ConfigError, match="metricsExporterType"):
        load_settings(None, {"metricsExporterType": "OTLP_GRPC"})
