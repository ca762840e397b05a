"""Reports the throughput of topics and groups (VIEW_BROKER_STATS_DATA in RocketMQ's AdminBrokerProcessor)."""

from collections.abc import Mapping

from rocketmq_broker.protocol.bodies.broker import BrokerStatsData, BrokerStatsItem
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_response
from rocketmq_broker.protocol.headers.topic import ViewBrokerStatsDataRequestHeader
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Handler, RequestRefused
from rocketmq_broker.server.statistics.flow_counter import Flow
from rocketmq_broker.server.statistics.message_flows import MessageFlows


class FlowProcessor:
    """Reports throughput, under the names of the statistics in `message_flows`."""

    def __init__(self, flows: MessageFlows) -> None:
        self._flows = flows

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Returns the handler of throughput requests, which Apache's exporter and mqadmin send."""
        return {RequestCode.VIEW_BROKER_STATS_DATA: self.view}

    def view(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with the values of one statistic for the last minute, hour and day."""
        header = command.decode_header(ViewBrokerStatsDataRequestHeader)
        report = self._flows.report(header.stats_name, header.stats_key)
        if report is None:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"The stats <{header.stats_name}> <{header.stats_key}> not exist")
        body = BrokerStatsData(stats_minute=_item(report.minute), stats_hour=_item(report.hour), stats_day=_item(report.day))
        return encode_response(command, ResponseCode.SUCCESS, body=body.encode())


def _item(flow: Flow) -> BrokerStatsItem:
    return BrokerStatsItem(sum=flow.amount, tps=flow.per_second, avgpt=flow.per_call)
