"""Serves the VIP channel (BrokerController's fastRemotingServer).

The VIP channel is the port with the number listenPort - 2. It does not serve pulls.
"""

from typing import Final

from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.remoting.connections.connection import Connection, RequestHandler
from rocketmq_broker.remoting.dispatcher import not_supported

PORTS_BELOW_LISTEN_PORT: Final = 2
"""The difference between listenPort and the port of the VIP channel.

Clients subtract it from the port in the route (MixAll.brokerVIPChannel).
"""

NOT_SERVED: Final = frozenset({RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE})


class VipChannel:
    """Passes all requests except pulls to the dispatcher, which also handles the requests on listenPort.

    Java clients before 4.5 use the VIP channel by default. Apache's dashboard and exporter use it too.
    """

    def __init__(self, dispatcher: RequestHandler) -> None:
        """Creates the channel. `dispatcher` also handles the requests on listenPort."""
        self._dispatcher = dispatcher

    def on_connected(self, connection: Connection) -> None:
        """Reports the new connection to the dispatcher."""
        self._dispatcher.on_connected(connection)

    def on_requests(self, connection: Connection, requests: list[RemotingCommand]) -> None:
        """Refuses pulls, and passes the other requests to the dispatcher."""
        for request in requests:
            if request.code in NOT_SERVED and not request.is_oneway:
                connection.send(not_supported(connection, request))
        self._dispatcher.on_requests(connection, [request for request in requests if request.code not in NOT_SERVED])

    def on_disconnected(self, connection: Connection) -> None:
        """Reports the closed connection to the dispatcher."""
        self._dispatcher.on_disconnected(connection)
