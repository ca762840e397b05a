"""The check with brokers that they can filter by a subscription (RocketMQ's MQClientInstance.checkClientInBroker)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rocketmq_broker.client.errors import BrokerError, BrokerUnreachable, IllegalConfiguration
from rocketmq_broker.client.instance.routes import Routes
from rocketmq_broker.client.pull.group_requests import GroupRequests
from rocketmq_broker.client.pull.subscription import Subscription
from rocketmq_broker.protocol.codes import ResponseCode

_FOR_GOOD: Final = frozenset(
    {ResponseCode.SYSTEM_ERROR, ResponseCode.SUBSCRIPTION_PARSE_FAILED, ResponseCode.REQUEST_CODE_NOT_SUPPORTED}
)
"""Answers that will not change: not enabled, not understood, an old broker."""


class SubscriptionCheck:
    """A check of expressions at the consumer's start; without it a mistake would only mean that no message comes."""

    def __init__(self, group: str, client_id: str, routes: Routes, requests: GroupRequests) -> None:
        """`routes` finds the brokers of a topic."""
        self._group = group
        self._client_id = client_id
        self._routes = routes
        self._requests = requests

    async def run(self, subscriptions: Iterable[Subscription]) -> None:
        """Asks the known brokers, except those that are away. Raises IllegalConfiguration if one of them refuses."""
        for subscription in subscriptions:
            if not subscription.is_by_tag:
                for broker_name in sorted(
                    {queue.broker_name for queue in self._routes.queues_to_subscribe(subscription.topic) or ()}
                ):
                    await self._ask(broker_name, subscription)

    async def _ask(self, broker_name: str, subscription: Subscription) -> None:
        try:
            await self._requests.check_client_config(self._group, self._client_id, broker_name, subscription)
        except BrokerUnreachable:
            return
        except BrokerError as error:
            if error.code in _FOR_GOOD:
                what = f"subscription of {subscription.topic} by {subscription.expression_type} {subscription.expression!r}"
                raise IllegalConfiguration(f"{what}: {error}") from None
