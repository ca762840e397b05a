"""The name server: the table of brokers and of the topics that they hold (RocketMQ's namesrv)."""

from rocketmq_broker.nameserver.server import NameServer

__all__ = ["NameServer"]
