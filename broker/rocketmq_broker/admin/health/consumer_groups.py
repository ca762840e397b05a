"""Examines the consumer groups that pop messages from a broker. Finds unacknowledged messages and repeated deliveries."""

from collections.abc import Sequence
from typing import Final

from rocketmq_broker.admin.broker_requests.figures import consumer_groups
from rocketmq_broker.admin.broker_requests.requests import TOOLS_GROUP, BrokerRequests
from rocketmq_broker.admin.errors import CannotAsk, Refused
from rocketmq_broker.admin.health.finding import HealthFinding, fine, wrong
from rocketmq_broker.admin.output.durations import duration_text
from rocketmq_broker.admin.output.numbers import counted
from rocketmq_broker.admin.progress.groups import QueueLag, progress_of

MAX_GROUPS: Final = 200
"""The maximum number of consumer groups to examine. It is limited because each group needs a request."""
_MAX_HEALTHY_ATTEMPTS: Final = 2
"""The maximum healthy number of deliveries of a message.

A higher number means that at least two attempts ended without an acknowledgement.
"""
_WHAT_TO_DO: Final = (
    "Find out why its consumers do not acknowledge in time: check their logs, their processing times and the invisible time that "
    "they request. After the group's last attempt (retryMaxTimes) a message becomes a dead letter."
)


async def examine_groups(subject: str, requests: BrokerRequests, now_ms: int) -> list[HealthFinding]:
    """Returns a finding for each group with unacknowledged messages or with repeated deliveries.

    Unacknowledged messages are normal during processing. Apache's brokers do not report the number of deliveries.
    """
    findings: list[HealthFinding] = []
    try:
        for group in (await groups_of_programs(requests))[:MAX_GROUPS]:
            findings += _of_group(subject, group, await progress_of(requests, group), now_ms)
    except (CannotAsk, Refused) as error:
        findings.append(fine(subject, f"It does not report which messages consumer groups have in hand: {error}."))
    return findings


async def groups_of_programs(requests: BrokerRequests) -> list[str]:
    """Returns the broker's consumer groups without that of RocketMQ's own tools. Raises CannotAsk or Refused."""
    return [group for group in await consumer_groups(requests) if group != TOOLS_GROUP]


def _of_group(subject: str, group: str, queues: Sequence[QueueLag], now_ms: int) -> list[HealthFinding]:
    in_hand = sum(queue.in_hand for queue in queues)
    attempts = max((queue.attempts for queue in queues), default=1)
    messages = f"{counted(in_hand, 'message')} in hand"
    if attempts > _MAX_HEALTHY_ATTEMPTS:
        what = f"The group {group} receives messages repeatedly, one of them for the {_nth(attempts)} time; it has {messages}."
        return [wrong(subject, what, _WHAT_TO_DO, group=group, inHand=in_hand, attempts=attempts)]
    visible_ms = [queue.next_visible_ms for queue in queues if queue.next_visible_ms is not None]
    if not visible_ms:
        return []
    then = f"an unacknowledged message is delivered again in {duration_text(max(0, min(visible_ms) - now_ms))}"
    return [fine(subject, f"The group {group} has {messages}; {then}.", group=group, inHand=in_hand)]


def _nth(number: int) -> str:
    """Formats an ordinal number, such as 3rd, 11th or 21st."""
    is_teen = number // 10 % 10 == 1
    return f"{number}{'th' if is_teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
