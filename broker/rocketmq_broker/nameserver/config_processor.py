"""Handles requests about the name server's settings (part of RocketMQ's DefaultRequestProcessor)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_response
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Handler, RequestRefused


class ConfigProcessor:
    """Handles requests about the settings, with RocketMQ's names. Settings cannot be changed while the name server runs."""

    def __init__(self, settings: Callable[[], Mapping[str, str]]) -> None:
        self._settings = settings

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Returns the handlers, keyed by request code."""
        return {
            RequestCode.GET_NAMESRV_CONFIG: self.get_config,
            RequestCode.UPDATE_NAMESRV_CONFIG: self.update_config,
        }

    def get_config(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with all settings, one on each line."""
        lines = "".join(f"{name}={value}\n" for name, value in self._settings().items())
        return encode_response(command, ResponseCode.SUCCESS, body=lines.encode())

    def update_config(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Refuses the change. RocketMQ's name server would respond with SUCCESS."""
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR,
            "settings of this name server cannot be changed while it runs: change its settings file and restart it",
        )
