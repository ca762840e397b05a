"""The screen that lists the connected producers and consumers of each group."""

from typing import Final, NamedTuple

from rocketmq_broker.admin.broker_requests.figures import all_producers, consumer_groups, consumers
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.admin.console.screen import Screen
from rocketmq_broker.admin.console.visit import Visit
from rocketmq_broker.admin.errors import NotSupported
from rocketmq_broker.message import topics


class ClientRow(NamedTuple):
    """A client of one group."""

    group: str
    client_id: str
    address: str
    language: str


class ClientFacts(NamedTuple):
    """The clients of one broker."""

    broker: str
    producers: list[ClientRow] | None
    """The connected producers; None if the broker does not list its producers."""
    consumers: list[ClientRow]


async def find(visit: Visit) -> list[ClientFacts]:
    """Returns the clients of each broker. Raises CannotAsk or Refused."""
    return [facts for _, facts in await (await visit.session()).ask_each(_of_broker)]


async def _of_broker(broker: BrokerRequests) -> ClientFacts:
    groups = [group for group in await consumer_groups(broker) if not topics.is_system_group(group)]
    members = [(group, client) for group in groups for client in (await consumers(broker, group)).connection_set]
    rows = [ClientRow(group, client.client_id, client.client_addr, str(client.language)) for group, client in members]
    return ClientFacts(broker.address, await _producers(broker), rows)


async def _producers(broker: BrokerRequests) -> list[ClientRow] | None:
    try:
        found = await all_producers(broker)
    except NotSupported:
        return None
    return [
        ClientRow(group, client.client_id, client.remote_ip.removeprefix("/"), str(client.language))
        for group, clients in sorted(found.items())
        for client in clients
    ]


SCREEN: Final = Screen("/clients", "Clients", "clients.html", find, refresh_s=2.0)
