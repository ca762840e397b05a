"""The composition root: the only place that builds and connects the broker's objects."""

from rocketmq_broker.app.broker import Broker
from rocketmq_broker.app.errors import StartError

__all__ = ["Broker", "StartError"]
