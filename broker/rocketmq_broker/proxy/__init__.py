"""The gRPC proxy for clients of RocketMQ 5, inside the broker (RocketMQ's proxy in local mode)."""

from rocketmq_broker.proxy.connections.caller import Caller
from rocketmq_broker.proxy.server import GrpcProxy

__all__ = ["Caller", "GrpcProxy"]
