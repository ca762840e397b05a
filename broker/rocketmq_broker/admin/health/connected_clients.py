"""The clients of one broker, and their versions."""

from __future__ import annotations

from typing import Final

from rocketmq_broker.admin.asking.figures import all_producers, consumer_groups, consumers
from rocketmq_broker.admin.asking.requests import TOOLS_GROUP, BrokerRequests
from rocketmq_broker.admin.errors import CannotAsk, Refused
from rocketmq_broker.admin.health.finding import HealthFinding, fine
from rocketmq_broker.admin.health.versions import Spoken, clients_found

_MOST_GROUPS: Final = 200
"""The most consumer groups to ask about: each takes a request."""


async def examine_clients(subject: str, requests: BrokerRequests) -> list[HealthFinding]:
    """Returns findings about the clients connected now. A broker that cannot list them counts as healthy."""
    try:
        clients = [
            Spoken(f"producer group {group}", producer.version)
            for group, members in (await all_producers(requests)).items()
            for producer in members
        ]
        groups = [group for group in await consumer_groups(requests) if group != TOOLS_GROUP]
        for group in groups[:_MOST_GROUPS]:
            clients += [Spoken(f"consumer group {group}", member.version) for member in await consumers(requests, group)]
    except (CannotAsk, Refused):
        return [fine(subject, "It does not tell of its clients: brokers of Apache do so from 4.9.5 on.")]
    found = clients_found(subject, clients)
    if len(groups) > _MOST_GROUPS:
        found.append(fine(subject, f"Only the first {_MOST_GROUPS} of its {len(groups)} consumer groups were looked at."))
    return found
