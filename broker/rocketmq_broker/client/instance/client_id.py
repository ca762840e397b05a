"""How a client names itself to brokers (RocketMQ's ClientConfig.buildMQClientId)."""

from rocketmq_broker.world import World


def new_client_id(world: World, address: str, instance_name: str | None = None) -> str:
    """`address@instance`. Without an instance name `pid#nanoseconds`, so that each client of a process is one of its own."""
    return f"{address}@{instance_name or f'{world.process_id()}#{world.steady_ns()}'}"
