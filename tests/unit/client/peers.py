"""Name servers and brokers as functions, for a remoting client that opens no socket."""

from collections.abc import Callable
from typing import NamedTuple, cast

from rocketmq_broker.client.instance.broker_calls import BrokerCalls
from rocketmq_broker.client.instance.routes import Routes
from rocketmq_broker.protocol.codes import ResponseCode, SerializeType
from rocketmq_broker.protocol.command import RemotingCommand, ReplyTo, encode_request, encode_response
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.remoting.client import RemotingClient
from rocketmq_broker.remoting.errors import ConnectFailed

Peer = Callable[[RemotingCommand], bytes | Exception]


class Asked(NamedTuple):
    """A request that a peer received."""

    address: str
    command: RemotingCommand
    is_oneway: bool
    timeout_ms: int


def success(header: CommandHeader | None = None, body: bytes = b"") -> bytes:
    return answer(ResponseCode.SUCCESS, header, body)


def answer(code: int, header: CommandHeader | None = None, body: bytes = b"", remark: str | None = None) -> bytes:
    return encode_response(ReplyTo(1, SerializeType.JSON), code, header, body, remark)


def decoded(frame: bytes) -> RemotingCommand:
    (command,) = FrameDecoder().feed(frame)
    return command


class Peers:
    """Peers at the given addresses. All other addresses refuse connections."""

    def __init__(self, **peers: Peer) -> None:
        """Takes the peers by name. Each gets the address `NAME:1`."""
        self.by_address: dict[str, Peer] = {f"{name}:1": peer for name, peer in peers.items()}
        self.asked: list[Asked] = []

    @property
    def codes(self) -> list[int]:
        return [asked.command.code for asked in self.asked]

    def as_remoting(self) -> RemotingClient:
        return cast(RemotingClient, self)

    async def invoke(
        self, address: str, code: int, header: CommandHeader | None = None, body: bytes = b"", *, timeout_ms: int = 3000
    ) -> RemotingCommand:
        answered = self._answer(address, code, header, body, timeout_ms, is_oneway=False)
        return decoded(answered)

    async def invoke_oneway(
        self,
        address: str,
        code: int,
        header: CommandHeader | None = None,
        body: bytes = b"",
        *,
        timeout_ms: int = 3000,
        remark: str | None = None,
    ) -> None:
        self._answer(address, code, header, body, timeout_ms, is_oneway=True)

    def _answer(
        self, address: str, code: int, header: CommandHeader | None, body: bytes, timeout_ms: int, *, is_oneway: bool
    ) -> bytes:
        request = decoded(encode_request(code, header, body, opaque=1, oneway=is_oneway))
        self.asked.append(Asked(address, request, is_oneway, timeout_ms))
        peer = self.by_address.get(address)
        answered = ConnectFailed(f"no connection to {address}: Connection refused") if peer is None else peer(request)
        if isinstance(answered, Exception):
            raise answered
        return answered


class Places:
    """Routes that only return the addresses of brokers."""

    queues_of_new_topics = 4

    async def address_of(self, broker_name: str, broker_id: int = 0, *, or_any: bool = False) -> str:
        return f"{broker_name}:1"


def calls_to(peers: Peers) -> BrokerCalls:
    """Returns BrokerCalls for brokers whose addresses are `NAME:1`."""
    return BrokerCalls(peers.as_remoting(), cast(Routes, Places()))
