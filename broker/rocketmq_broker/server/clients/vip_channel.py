"""The VIP channel: the port two below listenPort, without pulls that delay others (BrokerController's fastRemotingServer)."""

from __future__ import annotations

from typing import Final

from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.remoting.connections.connection import Connection, RequestHandler
from rocketmq_broker.remoting.dispatcher import not_supported

PORTS_BELOW_LISTEN_PORT: Final = 2
"""By this much clients lower the port that they find in a route (MixAll.brokerVIPChannel)."""

NOT_SERVED: Final = frozenset({RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE})


class VipChannel:
    """Serves all requests of the dispatcher except pulls. Both ports share the clients.

    Java clients before 4.5 send here by default, and so do Apache's dashboard and exporter.
    """

    def __init__(self, dispatcher: RequestHandler) -> None:
        """`dispatcher` serves listenPort."""
        self._dispatcher = dispatcher

    def on_connected(self, connection: Connection) -> None:
        """Tells the dispatcher."""
        self._dispatcher.on_connected(connection)

    def on_requests(self, connection: Connection, requests: list[RemotingCommand]) -> None:
        """Refuses pulls, and passes on the other requests of one read."""
        for request in requests:
            if request.code in NOT_SERVED and not request.is_oneway:
                connection.send(not_supported(connection, request))
        self._dispatcher.on_requests(connection, [request for request in requests if request.code not in NOT_SERVED])

    def on_disconnected(self, connection: Connection) -> None:
        """Tells the dispatcher, which forgets the connection."""
        self._dispatcher.on_disconnected(connection)
