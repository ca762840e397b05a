"""Tests of a client and a server on a simulated network, with each kind of network fault."""

import asyncio
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from rocketmq_broker.protocol import RemotingCommand, encode_response
from rocketmq_broker.remoting import ConnectFailed, Connection, ConnectionClosed, RemotingClient, RemotingServer, RemotingTimeout
from tests.unit.testing.simulation.simulated_links import PORT, Links, in_virtual_time, links, seconds_of

T = TypeVar("T")
ADDRESS = f"10.0.0.2:{PORT}"
CODE = 666
BODY = bytes(range(256)) * 20


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
async def test_both_sides_close_politely() -> None:
    made = await talk()
    await made.links.client.run(made.client.close())
    await asyncio.sleep(1)
    assert made.handler.disconnected == made.handler.connected
    await made.links.server.run(made.server.stop())
    assert not made.server.connections


@in_virtual_time
async def test_a_cut_fails_the_request_under_way_and_the_next_one_connects_again() -> None:
    made = await talk()
    request = asyncio.ensure_future(made.ask())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    made.links.network.cut("client", "server")
    with pytest.raises(ConnectionClosed, match="reset by peer"):
        await request
    assert await made.ask() == b"?"
    assert len(made.handler.connected) == 2


@in_virtual_time
async def test_a_request_cut_half_way_is_never_handled() -> None:
    made = await talk()
    made.links.network.cut_half_way("client", "server")
    with pytest.raises(ConnectionClosed):
        await made.ask()
    assert await made.ask(b"again") == b"again"
    assert made.handler.bodies == [b"first", b"again"]


@in_virtual_time
async def test_a_request_whose_answer_is_cut_half_way_is_handled_all_the_same() -> None:
    made = await talk()
    made.links.network.cut_half_way("server", "client")
    with pytest.raises(ConnectionClosed):
        await made.ask()
    assert made.handler.bodies == [b"first", b"?"]


@pytest.mark.parametrize(("a", "b", "handled"), [("client", "server", 1), ("server", "client", 2)])
@in_virtual_time
async def test_a_request_over_a_blocked_link_times_out_and_arrives_later(a: str, b: str, handled: int) -> None:
    made = await talk()
    made.links.network.block(a, b)
    assert await seconds_of(made.ask(), RemotingTimeout) == pytest.approx(3, abs=0.01)
    assert len(made.handler.bodies) == handled
    made.links.network.unblock(a, b)
    assert await made.ask(b"next") == b"next"
    assert (made.handler.bodies, len(made.handler.connected)) == ([b"first", b"?", b"next"], 1)


@in_virtual_time
async def test_nobody_connects_over_a_blocked_link() -> None:
    made = Talk()
    await made.begin()
    made.links.network.block("server", "client")
    with pytest.raises(ConnectFailed, match="within 3000 ms"):
        await made.ask()
    assert made.handler.connected == []


@pytest.mark.parametrize(("a", "b", "handled"), [("client", "server", 1), ("server", "client", 2)])
@in_virtual_time
async def test_a_lost_frame_times_out_and_the_connection_serves_the_next_request(a: str, b: str, handled: int) -> None:
    made = await talk()
    made.links.network.lose_frames(a, b, 1)
    assert await seconds_of(made.ask(), RemotingTimeout) == pytest.approx(3, abs=0.01)
    assert len(made.handler.bodies) == handled
    assert await made.ask() == b"?"
    assert len(made.handler.connected) == 1


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
async def test_a_slow_link_makes_an_answer_late_and_a_slower_one_too_late() -> None:
    made = await talk()
    made.links.network.slow_down("server", "client", 2, 2)
    assert await seconds_of(made.ask()) == pytest.approx(2, abs=0.01)
    made.links.network.slow_down("server", "client", 4, 4)
    await seconds_of(made.ask(), RemotingTimeout)
    made.links.network.speed_up("server", "client")
    await asyncio.sleep(2)
    assert await made.ask() == b"?"


@in_virtual_time
async def test_frames_in_pieces_are_understood() -> None:
    made = await talk()
    for a, b in (("client", "server"), ("server", "client")):
        made.links.network.in_pieces(a, b, True)
    assert await asyncio.gather(made.ask(BODY), made.ask(BODY[1:])) == [BODY, BODY[1:]]


@in_virtual_time
async def test_a_killed_server_closes_refuses_and_serves_again_after_its_start() -> None:
    made = await talk()
    request = asyncio.ensure_future(made.ask())
    await asyncio.sleep(0)
    made.links.kill(made.links.server)
    with pytest.raises(ConnectionClosed, match="reset by peer"):
        await request
    with pytest.raises(ConnectFailed, match="refused"):
        await made.ask()
    made.links.restart_server()
    await made.serve()
    assert await made.ask(b"again") == b"again"


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


@pytest.mark.parametrize(("is_after", "handled"), [(False, [b"first", b"1"]), (True, [b"first", b"1", b"2"])])
@in_virtual_time
async def test_a_process_may_die_before_or_after_one_of_its_frames(is_after: bool, handled: list[bytes]) -> None:
    made = await talk()
    made.links.network.at_frame("client", 2, lambda: made.links.kill(made.links.client), is_after=is_after)
    requests = [asyncio.ensure_future(made.ask(body)) for body in (b"1", b"2", b"3")]
    await asyncio.sleep(1)
    assert not any(request.done() for request in requests)
    assert (made.links.client.is_alive, made.handler.bodies, made.server.connections) == (False, handled, set())


@in_virtual_time
async def test_a_frozen_client_sees_its_answer_when_it_goes_on() -> None:
    made = await talk()
    made.links.network.at_frame("client", 1, lambda: made.links.freeze(made.links.client), is_after=True)
    request = asyncio.ensure_future(made.ask())
    await asyncio.sleep(60)
    assert (made.handler.bodies, request.done()) == ([b"first", b"?"], False)
    made.links.thaw(made.links.client)
    assert await request == b"?"


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
async def test_a_frozen_server_takes_connections_answers_nothing_and_handles_all_when_it_goes_on() -> None:
    made = Talk()
    await made.begin()
    made.links.freeze(made.links.server)
    await seconds_of(made.ask(b"1"), RemotingTimeout)
    await seconds_of(made.ask(b"2"), RemotingTimeout)
    assert (made.client.is_connected(ADDRESS), made.handler.bodies) == (True, [])
    made.links.thaw(made.links.server)
    assert await made.ask(b"3") == b"3"
    assert made.handler.bodies == [b"1", b"2", b"3"]


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
