"""Examines the clients of one broker and their versions."""

from typing import Final

from rocketmq_broker.admin.broker_requests.figures import all_producers, consumer_groups, consumers
from rocketmq_broker.admin.broker_requests.requests import TOOLS_GROUP, BrokerRequests
from rocketmq_broker.admin.errors import CannotAsk, Refused
from rocketmq_broker.admin.health.finding import HealthFinding, fine, wrong
from rocketmq_broker.admin.health.versions import ProgramVersion, clients_found
from rocketmq_broker.admin.progress.groups import SAME_SUBSCRIPTIONS

_MAX_GROUPS: Final = 200
"""The maximum number of consumer groups to examine. It is limited because each group needs a request."""


async def examine_clients(subject: str, requests: BrokerRequests) -> list[HealthFinding]:
    """Returns findings about the connected clients. A broker that cannot list its clients counts as healthy."""
    differing: list[HealthFinding] = []
    try:
        clients = [
            ProgramVersion(f"producer group {group}", producer.version)
            for group, members in (await all_producers(requests)).items()
            for producer in members
        ]
        groups = [group for group in await consumer_groups(requests) if group != TOOLS_GROUP]
        for group in groups[:_MAX_GROUPS]:
            members = await consumers(requests, group)
            clients += [ProgramVersion(f"consumer group {group}", member.version) for member in members.connection_set]
            if members.disagreement is not None:
                differing.append(wrong(subject, f"{members.disagreement}.", SAME_SUBSCRIPTIONS, group=group))
    except (CannotAsk, Refused):
        return [fine(subject, "It does not list its clients: Apache's brokers do since 4.9.5.")]
    found = clients_found(subject, clients) + differing
    if len(groups) > _MAX_GROUPS:
        found.append(fine(subject, f"Only the first {_MAX_GROUPS} of its {len(groups)} consumer groups were examined."))
    return found
