"""Examines the clients of one broker and their versions."""

from rocketmq_broker.admin.broker_requests.figures import all_producers, consumers
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.admin.errors import CannotAsk, Refused
from rocketmq_broker.admin.health.consumer_groups import MAX_GROUPS, groups_of_programs
from rocketmq_broker.admin.health.finding import HealthFinding, fine, wrong
from rocketmq_broker.admin.health.versions import ProgramVersion, clients_found
from rocketmq_broker.admin.progress.groups import SAME_SUBSCRIPTIONS


async def examine_clients(subject: str, requests: BrokerRequests) -> list[HealthFinding]:
    """Returns findings about the connected clients. A broker that cannot list its clients counts as healthy."""
    differing: list[HealthFinding] = []
    try:
        clients = [
            ProgramVersion(f"producer group {group}", producer.version)
            for group, members in (await all_producers(requests)).items()
            for producer in members
        ]
        groups = await groups_of_programs(requests)
        for group in groups[:MAX_GROUPS]:
            members = await consumers(requests, group)
            clients += [ProgramVersion(f"consumer group {group}", member.version) for member in members.connection_set]
            if members.disagreement is not None:
                differing.append(wrong(subject, f"{members.disagreement}.", SAME_SUBSCRIPTIONS, group=group))
    except (CannotAsk, Refused):
        return [fine(subject, "It does not list its clients: Apache's brokers do since 4.9.5.")]
    found = clients_found(subject, clients) + differing
    if len(groups) > MAX_GROUPS:
        found.append(fine(subject, f"Only the first {MAX_GROUPS} of its {len(groups)} consumer groups were examined."))
    return found
