"""How a client names itself to brokers (RocketMQ's ClientConfig.buildMQClientId)."""

import os
import socket
import time


def local_address() -> str:
    """The IPv4 address others know this machine by; 127.0.0.1 where there is no network. Sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # TEST-NET-1: only asks which way packets would leave
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def new_client_id(address: str, instance_name: str | None = None) -> str:
    """`address@instance`. Without an instance name `pid#nanoseconds`, so that each client of a process is one of its own."""
    return f"{address}@{instance_name or f'{os.getpid()}#{time.monotonic_ns()}'}"
