"""The consumer groups of one broker that pop: what they have in hand, and what comes to them again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rocketmq_broker.admin.asking.figures import consumer_groups
from rocketmq_broker.admin.asking.requests import TOOLS_GROUP, BrokerRequests
from rocketmq_broker.admin.errors import CannotAsk, Refused
from rocketmq_broker.admin.health.finding import HealthFinding, fine, wrong
from rocketmq_broker.admin.progress.groups import QueueLag, progress_of
from rocketmq_broker.admin.telling.durations import duration_text

_MAX_GROUPS: Final = 200
"""The most consumer groups to ask about: each takes a request."""
_AGAIN_AND_AGAIN: Final = 3
"""Deliveries of one message: the first attempt and the second one both ended without an acknowledgement."""
_WHAT_TO_DO: Final = (
    "Look why its consumers do not acknowledge in time: their logs, how long a message takes them, the invisible time that they "
    "ask for. After the group's last attempt (retryMaxTimes) a message becomes a dead letter."
)


async def examine_groups(subject: str, requests: BrokerRequests, now_ms: int) -> list[HealthFinding]:
    """Returns a finding for each group with messages in hand, or with messages that come again and again.

    Messages in hand are no fault: a consumer works on them. Apache's brokers do not tell how often a message came.
    """
    findings: list[HealthFinding] = []
    try:
        groups = [group for group in await consumer_groups(requests) if group != TOOLS_GROUP]
        for group in groups[:_MAX_GROUPS]:
            findings += _of_group(subject, group, await progress_of(requests, group), now_ms)
    except (CannotAsk, Refused) as error:
        findings.append(fine(subject, f"It does not tell what consumer groups have in hand: {error}."))
    return findings


def _of_group(subject: str, group: str, queues: Sequence[QueueLag], now_ms: int) -> list[HealthFinding]:
    in_hand = sum(queue.in_hand for queue in queues)
    attempts = max((queue.attempts for queue in queues), default=1)
    messages = f"{in_hand} message{'' if in_hand == 1 else 's'} in hand"
    if attempts >= _AGAIN_AND_AGAIN:
        what = f"Messages come to the group {group} again and again, one for the {_nth(attempts)} time; it has {messages}."
        return [wrong(subject, what, _WHAT_TO_DO, group=group, inHand=in_hand, attempts=attempts)]
    visible_ms = [queue.next_visible_ms for queue in queues if queue.next_visible_ms is not None]
    if not visible_ms:
        return []
    then = f"what is not acknowledged begins to come again in {duration_text(max(0, min(visible_ms) - now_ms))}"
    return [fine(subject, f"The group {group} has {messages}; {then}.", group=group, inHand=in_hand)]


def _nth(number: int) -> str:
    """Returns the ordinal number: 3rd, 4th, 11th, 21st."""
    is_teen = number // 10 % 10 == 1
    return f"{number}{'th' if is_teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
