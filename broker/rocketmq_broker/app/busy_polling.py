"""Computes how long the broker polls for events before it sleeps. Polling needs a processor that the clients do not use."""

from typing import Final

from rocketmq_broker.config import BrokerSettings

_ENOUGH_PROCESSORS: Final = 2


def busy_poll_s(settings: BrokerSettings, processors: float) -> float:
    """Returns the polling time in seconds.

    Returns 0 if there are too few processors, or if gRPC is enabled, because the threads of gRPC need the interpreter lock.
    """
    if processors < _ENOUGH_PROCESSORS or settings.grpc_server_port >= 0:
        return 0.0
    return settings.busy_poll_micros / 1e6
