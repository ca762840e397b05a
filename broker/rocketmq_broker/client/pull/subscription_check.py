"""Checks that brokers support the filters of subscriptions (RocketMQ's MQClientInstance.checkClientInBroker)."""

from collections.abc import Iterable
from typing import Final

from rocketmq_broker.client.errors import BrokerError, BrokerUnreachable, IllegalConfiguration
from rocketmq_broker.client.instance.routes import Routes
from rocketmq_broker.client.pull.group_requests import GroupRequests
from rocketmq_broker.client.pull.subscription import Subscription
from rocketmq_broker.protocol.codes import ResponseCode

_PERMANENT: Final = frozenset(
    {ResponseCode.SYSTEM_ERROR, ResponseCode.SUBSCRIPTION_PARSE_FAILED, ResponseCode.REQUEST_CODE_NOT_SUPPORTED}
)
"""The response codes of permanent failures: filters not enabled, an invalid expression, an old broker."""


class SubscriptionCheck:
    """Checks SQL92 expressions when a consumer starts, because an invalid expression would silently match no messages."""

    def __init__(self, group: str, client_id: str, routes: Routes, requests: GroupRequests) -> None:
        """`routes` provides the brokers of a topic."""
        self._group = group
        self._client_id = client_id
        self._routes = routes
        self._requests = requests

    async def run(self, subscriptions: Iterable[Subscription]) -> None:
        """Sends each subscription to all reachable brokers of its topic. Raises IllegalConfiguration if a broker refuses it."""
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
            if error.code in _PERMANENT:
                what = f"subscription of {subscription.topic} by {subscription.expression_type} {subscription.expression!r}"
                raise IllegalConfiguration(f"{what}: {error}") from None
