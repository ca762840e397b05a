"""Tests the settings that a broker in a container gets, as far as no container engine is needed."""

import pytest

pytest.importorskip("testcontainers")  # tests/foreign/pythons and windows have no Docker

from rocketmq_broker.testing.containers import RocketMQContainer


@pytest.mark.parametrize("name", ["listenPort", "namesrvListenPort", "grpcServerPort", "bindAddress", "brokerIP1"])
def test_a_setting_that_the_container_decides_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"set by RocketMQContainer and cannot be changed: {name}"):
        RocketMQContainer(settings={name: "1"})
