"""Refuses changes of settings at run time (UPDATE_BROKER_CONFIG in RocketMQ's AdminBrokerProcessor)."""

from collections.abc import Mapping

from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Handler, RequestRefused


class SettingsProcessor:
    """Refuses all changes of settings. RocketMQ also accepts changes that have no effect, which is misleading."""

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Returns the handler of requests to change settings."""
        return {RequestCode.UPDATE_BROKER_CONFIG: self.update}

    def update(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Raises RequestRefused. The error text names the settings, and recommends a restart with a changed broker.conf."""
        names = sorted(
            line.partition("=")[0].strip() for line in command.body.decode(errors="replace").splitlines() if "=" in line
        )
        remark = f"{', '.join(names) or 'settings'}: cannot be changed at run time; change broker.conf and restart the broker"
        raise RequestRefused(ResponseCode.NO_PERMISSION, remark)
