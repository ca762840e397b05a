"""A Testcontainers module that runs a broker and a name server in a Docker container.

It needs the extra `testcontainers`: pip install 'rocketmq-broker[testcontainers]'.
"""

import socket
from collections.abc import Mapping
from contextlib import ExitStack
from importlib.util import find_spec
from typing import Final, Self

if find_spec("testcontainers") is None:
    raise ImportError("a broker in a container needs the package testcontainers: pip install 'rocketmq-broker[testcontainers]'")

from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

_LOOPBACK: Final = "127.0.0.1"
_LOCAL: Final = ("localhost", _LOOPBACK)
_SERVES: Final = r"^The broker\[.* boot success\."
_SETTINGS_FILE: Final = "/etc/rocketmq/broker.conf"
_DEFAULTS: Final = {"brokerName": "broker-a", "storePathRootDir": "/data/store"}
_NAME_SERVER, _BROKER, _PROXY = "namesrvListenPort", "listenPort", "grpcServerPort"
_DECIDED: Final = {_NAME_SERVER, _BROKER, _PROXY, "bindAddress", "brokerIP1"}


class RocketMQContainer(DockerContainer):
    """A broker and its name server in a container (docs/docker.md, "The broker alone").

    `with RocketMQContainer("rocketmq-broker") as rocketmq:` starts the container, waits until the broker is ready, and finally
    removes the container with its store. `settings` are added to its broker.conf. `is_grpc_open` opens the port for RocketMQ 5
    clients.

    Routes contain the broker's address, so each port has the same number inside and outside the container. The ports are chosen
    from the free ports of this machine. They are published on 127.0.0.1. If the Docker engine runs on another machine, they are
    published on all addresses of that machine.

    `start` raises RuntimeError with the broker's log if the broker exits, and TimeoutError if it is not ready within 120 s (see
    the environment variable TC_MAX_TRIES). Raises ValueError for a setting that this class sets itself.
    """

    def __init__(
        self, image: str = "rocketmq-broker", *, settings: Mapping[str, str] | None = None, is_grpc_open: bool = False
    ) -> None:
        chosen = dict(settings or {})
        if refused := sorted(chosen.keys() & _DECIDED):
            raise ValueError(f"these settings are set by RocketMQContainer and cannot be changed: {', '.join(refused)}")
        super().__init__(image)
        engine = self.get_docker_client().host()
        self._host = _LOOPBACK if engine in _LOCAL else engine
        names = [_NAME_SERVER, _BROKER, *([_PROXY] if is_grpc_open else [])]
        self._ports = dict(zip(names, _free_ports(len(names)), strict=True))
        lines = {**_DEFAULTS, **chosen, **self._ports, "bindAddress": "0.0.0.0", "brokerIP1": self._host}
        self.with_copy_into_container("".join(f"{name}={value}\n" for name, value in lines.items()).encode(), _SETTINGS_FILE)
        self.waiting_for(LogMessageWaitStrategy(_SERVES).with_poll_interval(0.2))

    def start(self) -> Self:
        """Starts the container. Returns it when the broker is ready."""
        try:
            return super().start()
        except RuntimeError as error:
            error.add_note(b"".join(self.get_logs()).decode(errors="replace"))
            raise

    @property
    def namesrv_addr(self) -> str:
        """The name server's address, for clients on this machine."""
        return self._address(_NAME_SERVER)

    @property
    def broker_addr(self) -> str:
        """The broker's address, as clients receive it in routes."""
        return self._address(_BROKER)

    @property
    def grpc_endpoint(self) -> str | None:
        """The endpoint for RocketMQ 5 clients. None unless `is_grpc_open`."""
        return self._address(_PROXY) if _PROXY in self._ports else None

    def _address(self, name: str) -> str:
        return f"{self._host}:{self._ports[name]}"

    def _configure(self) -> None:
        for port in self._ports.values():
            self.with_bind_ports(port, port)
            if self._host == _LOOPBACK:
                self.ports[str(port)] = (_LOOPBACK, port)  # type: ignore[assignment]  # the Docker engine also accepts a pair


def _free_ports(count: int) -> list[int]:
    """Returns `count` free ports of the loopback address."""
    with ExitStack() as kept:
        probes = [kept.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((_LOOPBACK, 0))
        return [probe.getsockname()[1] for probe in probes]
