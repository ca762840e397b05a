"""Tests of the values of `brokerIP1`."""

from collections.abc import Callable

import pytest

from rocketmq_broker.app import Broker, StartError
from rocketmq_broker.message.record import host_bytes


async def test_it_may_be_a_name_which_clients_are_told_and_records_hold_the_address_of(new_broker: Callable[..., Broker]) -> None:
    named = new_broker(broker_ip1="localhost")
    await named.start()
    identity = named.identity
    await named.stop()
    assert identity.address == f"localhost:{identity.port}"
    assert identity.store_host == host_bytes("127.0.0.1", identity.port)


@pytest.mark.parametrize("host", ["", "a..b", "no.such.host.invalid"])
async def test_a_name_that_nobody_has_is_a_start_error(new_broker: Callable[..., Broker], host: str) -> None:
    with pytest.raises(StartError, match=f"brokerIP1={host}: "):
        await new_broker(broker_ip1=host).start()
