"""Sends requests to the name servers, in order, until one of them responds (RocketMQ's MQClientAPIImpl)."""

import logging
import os
import re

from rocketmq_broker.client.errors import BrokerError, BrokerUnreachable, IllegalConfiguration, NameServerUnreachable
from rocketmq_broker.client.instance.calls import ask, understood
from rocketmq_broker.message.text.mistakes import kind_of
from rocketmq_broker.protocol.bodies.route import ClusterInfo, TopicRouteData
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.headers.name_server import GetRouteInfoRequestHeader
from rocketmq_broker.remoting.client import RemotingClient
from rocketmq_broker.remoting.errors import ConnectionClosed

logger = logging.getLogger(__name__)

DEFAULT_ADDRESS = "127.0.0.1:9876"
TIMEOUT_MS = 3000
FAILOVER_TIMEOUT_MS = 1000
"""The timeout in milliseconds for each name server except the last. A hanging server must not use up the send timeout of 3 s."""

_EXPECTED = "expected host:port, or several joined by ';'"
_HOST_AND_PORT = re.compile(r"(?P<host>[^\s:/\[\]]+|\[[0-9a-fA-F:.]+\]):(?P<port>\d{1,9})")
_HIGHEST_PORT = 65535


def name_server_addresses(namesrv_addr: str | None) -> tuple[str, ...]:
    """Returns the addresses in `host:port;host:port`. The default is the variable NAMESRV_ADDR, or else 127.0.0.1:9876.

    Raises IllegalConfiguration if an address is not a host and port.
    """
    if namesrv_addr is not None and not isinstance(namesrv_addr, str):
        raise IllegalConfiguration(f"namesrv_addr must be a str, not {kind_of(namesrv_addr)}: {_EXPECTED}")
    source = "namesrv_addr" if namesrv_addr else "environment variable NAMESRV_ADDR"
    text = namesrv_addr or os.environ.get("NAMESRV_ADDR") or DEFAULT_ADDRESS
    addresses = tuple(dict.fromkeys(part.strip().removeprefix("http://") for part in re.split("[;,]", text) if part.strip()))
    for address in addresses:
        if wrong := _what_is_wrong(address):
            raise IllegalConfiguration(f"{source}: name server {address!r} {wrong}: {_EXPECTED}")
    if not addresses:
        raise IllegalConfiguration(f"{source} {text!r} contains no address: {_EXPECTED}")
    return addresses


def _what_is_wrong(address: str) -> str | None:
    """Returns a description of the mistake in an address, or None if the address is valid."""
    parts = _HOST_AND_PORT.fullmatch(address)
    if parts is not None:
        return None if 1 <= int(parts["port"]) <= _HIGHEST_PORT else f"has a port that is not between 1 and {_HIGHEST_PORT}"
    if "://" in address or "/" in address:
        return "is a URL"
    if " " in address:
        return "contains a space"
    if address.count(":") > 1 and "[" not in address:
        return "has too many colons, or is an IPv6 address without brackets such as [::1]:9876"
    if ":" not in address:
        return f"has no port (default: {address}:9876)"
    return "has no host or no port"


class NameServers:
    """Sends requests to the name servers. At least one of them must be up."""

    def __init__(self, addresses: tuple[str, ...], remoting: RemotingClient) -> None:
        """Creates a client of the name servers at `addresses`, which `name_server_addresses` returned."""
        self.addresses = addresses
        self._remoting = remoting
        self._first = 0

    @understood
    async def find_route(self, topic: str) -> TopicRouteData | None:
        """Returns the route of the topic; None if no name server has it. Raises NameServerUnreachable if none responds."""
        answer = await self._ask(
            RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader(topic=topic, accept_standard_json_only=True)
        )
        return None if answer is None else TopicRouteData.decode(answer.body)

    @understood
    async def cluster_info(self) -> ClusterInfo | None:
        """Returns all registered brokers; None if no name server has the data. Raises NameServerUnreachable if none responds."""
        answer = await self._ask(RequestCode.GET_BROKER_CLUSTER_INFO, None)
        return None if answer is None else ClusterInfo.decode(answer.body)

    async def _ask(self, code: RequestCode, header: CommandHeader | None) -> RemotingCommand | None:
        """Returns the first successful response.

        Returns None if no responding name server has the data, for example because it has just started.
        """
        failure: Exception | None = None
        someone_answered = False
        for step in range(len(self.addresses)):
            index = (self._first + step) % len(self.addresses)
            timeout_ms = TIMEOUT_MS if step + 1 == len(self.addresses) else FAILOVER_TIMEOUT_MS
            try:
                answer = await ask(self._remoting, self.addresses[index], code, header, timeout_ms=timeout_ms)
            except BrokerUnreachable as error:
                failure = failure or error
                continue
            if answer.code == ResponseCode.SUCCESS and answer.body:
                self._first = index
                return answer
            if answer.code in (ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST):
                someone_answered = True
            else:
                failure = failure or BrokerError(answer.code, answer.remark, self.addresses[index])
        if someone_answered:
            return None
        raise NameServerUnreachable(
            f"no name server answers at {';'.join(self.addresses)} ({failure}). {_what_to_do(failure)}"
        ) from failure


def _what_to_do(failure: Exception | None) -> str:
    if isinstance(failure, BrokerError) and failure.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
        return "A broker listens at this address: set NAMESRV_ADDR to the name server (default port 9876)"
    if failure is not None and isinstance(failure.__cause__, ConnectionClosed):
        return "The server closed the connection: it may require TLS (tls=, ROCKETMQ_TLS_ENABLE), or be another program"
    return "Start the broker, or set NAMESRV_ADDR"
