"""Finds the brokers that a command works with."""

from typing import NamedTuple

from rocketmq_broker.admin.errors import CannotAsk
from rocketmq_broker.client.errors import ClientError
from rocketmq_broker.client.instance.name_servers import NameServers, name_server_addresses
from rocketmq_broker.protocol.bodies.route import ClusterInfo
from rocketmq_broker.protocol.errors import ProtocolError
from rocketmq_broker.remoting.client import RemotingClient, split_address


class BrokerAddress(NamedTuple):
    """The name and address of a broker. The name is empty if only the address was given."""

    name: str
    address: str


async def find_brokers(remoting: RemotingClient, *, namesrv_addr: str | None, broker_addr: str | None) -> list[BrokerAddress]:
    """Returns the broker at `broker_addr`, or all masters registered at the name servers. Raises CannotAsk if there are none."""
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
        raise CannotAsk(f"a name server sent an invalid response: {error}") from None
    masters = masters_of(cluster)
    if not masters:
        raise CannotAsk(f"no broker is registered at {';'.join(name_servers.addresses)}")
    return masters


def masters_of(cluster: ClusterInfo | None) -> list[BrokerAddress]:
    """Returns the masters that are registered at a name server, sorted by name."""
    return [
        BrokerAddress(name, broker.master_address)
        for name, broker in sorted((cluster.broker_addr_table if cluster is not None else {}).items())
        if broker.master_address is not None
    ]
