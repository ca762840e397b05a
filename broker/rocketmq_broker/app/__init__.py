"""The composition root: the only place that builds the broker's objects and ties them together."""

from rocketmq_broker.app.broker import Broker
from rocketmq_broker.app.errors import StartError

__all__ = ["Broker", "StartError"]
