"""Refuses operators' changes of settings at run time (UPDATE_BROKER_CONFIG of RocketMQ's AdminBrokerProcessor)."""

from __future__ import annotations

from collections.abc import Mapping

from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Handler, RequestRefused


class SettingsProcessor:
    """Refuses all changes: RocketMQ accepts even changes without effect, which misleads."""

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """The handler of requests to change a setting."""
        return {RequestCode.UPDATE_BROKER_CONFIG: self.update}

    def update(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Raises RequestRefused."""
        names = sorted(
            line.partition("=")[0].strip() for line in command.body.decode(errors="replace").splitlines() if "=" in line
        )
        remark = f"{', '.join(names) or 'settings'}: read only when the broker starts: change broker.conf and restart it"
        raise RequestRefused(ResponseCode.NO_PERMISSION, remark)
