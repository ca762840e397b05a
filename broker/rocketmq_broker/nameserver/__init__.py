"""The name server: which brokers are there, and which topics they hold (RocketMQ's namesrv)."""

from rocketmq_broker.nameserver.server import NameServer

__all__ = ["NameServer"]
