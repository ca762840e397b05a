"""Tests of a client and a server on a simulated network: what a fault of the network does to whole requests."""

import asyncio
from dataclasses import dataclass, field

import pytest

from rocketmq_broker.protocol import RemotingCommand, encode_response
from rocketmq_broker.remoting import Connection, ConnectionClosed, RemotingClient, RemotingServer, RemotingTimeout
from tests.unit.testing.simulation.simulated_links import PORT, Links, in_virtual_time, links, seconds_of

ADDRESS = f"10.0.0.2:{PORT}"
CODE = 666


class Answering:
    """A request handler that returns each request's body, and records requests and connections."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.connected: list[Connection] = []
        self.disconnected: list[Connection] = []

    def on_connected(self, connection: Connection) -> None:
        self.connected.append(connection)

    def on_requests(self, connection: Connection, requests: list[RemotingCommand]) -> None:
        for request in requests:
            self.bodies.append(request.body)
            connection.send(encode_response(request, 0, None, request.body))

    def on_disconnected(self, connection: Connection) -> None:
        self.disconnected.append(connection)


@dataclass
class Talk:
    """A client, and a server that accepts connections."""

    links: Links = field(default_factory=links)
    handler: Answering = field(default_factory=Answering)

    async def begin(self) -> None:
        self.client = self.links.client.call(RemotingClient)
        await self.serve()

    async def serve(self) -> None:
        """Starts the server in its process."""
        process = self.links.server
        self.server = process.call(lambda: RemotingServer("0.0.0.0", PORT, self.handler, steady_ns=process.world.steady_ns))
        await process.run(self.server.start())

    async def ask(self, body: bytes = b"?") -> bytes:
        """Sends a request, and returns the body of the response."""
        return (await self.links.client.run(self.client.invoke(ADDRESS, CODE, None, body))).body


async def talk() -> Talk:
    """Starts a client and a server, and returns them after the first response."""
    made = Talk()
    await made.begin()
    assert await made.ask(b"first") == b"first"
    return made


@in_virtual_time
async def test_requests_are_answered_on_one_connection() -> None:
    made = await talk()
    assert await asyncio.gather(*(made.ask(bytes([number])) for number in range(50))) == [bytes([n]) for n in range(50)]
    assert [connection.peer for connection in made.handler.connected] == ["10.0.0.1:50001"]


@in_virtual_time
async def test_a_lost_frame_is_told_by_its_code() -> None:
    made = await talk()
    made.links.network.lose_frames("client", "server", 1)
    with pytest.raises(RemotingTimeout):
        await made.ask()
    happening = made.links.history.happenings[-1]
    assert (happening.process, happening.kind) == ("client -> server", "frame-lost")
    assert happening.text == "request 1 (code 666, 108 bytes) is lost"


@in_virtual_time
async def test_a_killed_client_frees_its_connection_at_the_server() -> None:
    made = await talk()
    made.links.network.slow_down("server", "client", 1, 2)
    request = asyncio.ensure_future(made.ask(b"its last"))
    await asyncio.sleep(0.01)
    made.links.kill(made.links.client)
    await asyncio.sleep(2)
    assert not request.done()
    assert (made.handler.bodies, made.server.connections) == ([b"first", b"its last"], set())


@in_virtual_time
async def test_a_server_without_power_is_silent_and_its_next_start_resets_the_old_connection() -> None:
    made = await talk()
    made.links.kill(made.links.server, is_power=True)
    await seconds_of(made.ask(), RemotingTimeout)
    assert made.client.is_connected(ADDRESS)
    made.links.restart_server()
    await made.serve()
    with pytest.raises(ConnectionClosed, match="reset by peer"):
        await made.ask(b"on the old connection")
    assert await made.ask(b"again") == b"again"
    assert made.handler.bodies == [b"first", b"again"]


@in_virtual_time
async def test_a_server_whose_answers_are_held_reads_no_more_until_they_leave() -> None:
    made = await talk()
    made.links.network.block("server", "client")
    requests = [asyncio.ensure_future(made.ask(bytes(700_000))) for _ in range(2)]
    await asyncio.sleep(1)
    assert not made.handler.connected[0].is_writable
    requests.append(asyncio.ensure_future(made.ask(b"unread")))
    await asyncio.sleep(1)
    assert b"unread" not in made.handler.bodies
    made.links.network.unblock("server", "client")
    assert [len(body) for body in await asyncio.gather(*requests)] == [700_000, 700_000, 6]
