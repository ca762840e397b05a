"""Tests when the broker polls for a moment before it sleeps."""

import msgspec
import pytest

from rocketmq_broker.app.busy_polling import busy_poll_s
from rocketmq_broker.config import BrokerSettings

SETTINGS = BrokerSettings()


@pytest.mark.parametrize(
    ("settings", "processors", "seconds"),
    [
        (SETTINGS, 2, 0.000_3),
        (SETTINGS, 1.5, 0),
        (msgspec.structs.replace(SETTINGS, busy_poll_micros=50), 8, 0.000_05),
        (msgspec.structs.replace(SETTINGS, busy_poll_micros=0), 8, 0),
        (msgspec.structs.replace(SETTINGS, grpc_server_port=8081), 8, 0),
    ],
    ids=["enough processors", "too few", "a setting", "switched off", "beside gRPC"],
)
def test_it_needs_a_processor_and_the_interpreter(settings: BrokerSettings, processors: float, seconds: float) -> None:
    assert busy_poll_s(settings, processors) == seconds
