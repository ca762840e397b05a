"""Finds the brokers to ask."""

from __future__ import annotations

from typing import NamedTuple

from rocketmq_broker.admin.errors import CannotAsk
from rocketmq_broker.client.errors import ClientError
from rocketmq_broker.client.instance.name_servers import NameServers, name_server_addresses
from rocketmq_broker.protocol.bodies.route import ClusterInfo
from rocketmq_broker.protocol.errors import ProtocolError
from rocketmq_broker.remoting.client import RemotingClient, split_address


class BrokerAddress(NamedTuple):
    """A broker by name and address; the name is empty where only the address was given."""

    name: str
    address: str


async def find_brokers(remoting: RemotingClient, *, namesrv_addr: str | None, broker_addr: str | None) -> list[BrokerAddress]:
    """Returns the broker at `broker_addr`, or else all masters that the name servers know. Raises CannotAsk if there are none."""
    if broker_addr is not None:
        try:
            split_address(broker_addr)
        except ValueError as error:
            raise CannotAsk(f"--broker-addr: {error}") from None
        return [BrokerAddress("", broker_addr)]
    try:
        name_servers = NameServers(name_server_addresses(namesrv_addr), remoting)
        cluster = await name_servers.cluster_info()
    except ClientError as error:
        raise CannotAsk(str(error)) from None
    except ProtocolError as error:
        raise CannotAsk(f"a name server answered what cannot be understood: {error}") from None
    masters = masters_of(cluster)
    if not masters:
        raise CannotAsk(f"no broker is registered at {';'.join(name_servers.addresses)}")
    return masters


def masters_of(cluster: ClusterInfo | None) -> list[BrokerAddress]:
    """Returns the masters that a name server knows, by name."""
    return [
        BrokerAddress(name, broker.master_address)
        for name, broker in sorted((cluster.broker_addr_table if cluster is not None else {}).items())
        if broker.master_address is not None
    ]
