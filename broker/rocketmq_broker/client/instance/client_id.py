"""The id of a client at brokers (RocketMQ's ClientConfig.buildMQClientId)."""

from rocketmq_broker.world import World


def new_client_id(world: World, address: str, instance_name: str | None = None) -> str:
    """Returns `address@instance`. The default instance, `pid#nanoseconds`, differs for each client of a process."""
    return f"{address}@{instance_name or f'{world.process_id()}#{world.steady_ns()}'}"
