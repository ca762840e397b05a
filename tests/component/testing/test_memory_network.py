"""Tests of connections within an event loop."""

import asyncio
import socket
import sys

import pytest

from rocketmq_broker.remoting.network import Listener
from rocketmq_broker.testing.memory_network import MemoryNetwork
from tests.unit.testing.simulation.simulated_links import End


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def listening(network: MemoryNetwork) -> tuple[Listener, list[End]]:
    """Returns a listener, and the list to which it adds the server's end of each connection."""
    servers: list[End] = []

    def new_server() -> End:
        servers.append(End())
        return servers[-1]

    listener = await network.bind(new_server, "127.0.0.1", 0, 10)
    listener.start()
    return listener, servers


async def pair(network: MemoryNetwork) -> tuple[End, End]:
    listener, servers = await listening(network)
    client = await network.connect(End, "127.0.0.1", listener.port, None)
    return client, servers[0]


async def test_what_one_end_writes_the_other_end_has() -> None:
    client, server = await pair(MemoryNetwork(is_open=False))
    client.transport.write(b"1")
    client.transport.write(b"2")
    server.transport.write(b"3")
    assert server.data == b""
    await turns()
    assert (server.data, client.data) == (b"12", b"3")
    assert client.transport.get_extra_info("peername") == server.transport.get_extra_info("sockname")


async def test_all_that_was_written_comes_before_the_end() -> None:
    client, server = await pair(MemoryNetwork(is_open=False))
    client.transport.write(b"last")
    client.transport.close()
    await turns()
    assert (server.data, server.events, client.events) == (b"last", ["end", "closed"], ["closed"])


async def test_a_connection_that_is_cut_is_lost_at_both_ends() -> None:
    network = MemoryNetwork(is_open=False)
    client, server = await pair(network)
    client.transport.write(b"lost")
    assert network.cut() == 1
    await turns()
    assert (server.data, server.events, client.events) == (b"", ["closed"], ["lost ConnectionResetError"])


async def test_who_writes_more_than_the_other_end_reads_is_told_to_pause() -> None:
    client, server = await pair(MemoryNetwork(is_open=False))
    client.transport.set_write_buffer_limits(high=10)
    server.transport.pause_reading()
    client.transport.write(bytes(11))
    await turns()
    assert (client.events, client.transport.get_write_buffer_size()) == (["pause"], 11)
    server.transport.resume_reading()
    await turns()
    assert (client.events, len(server.data)) == (["pause", "resume"], 11)


async def test_nobody_is_at_a_port_that_was_given_back_and_none_is_outside() -> None:
    network = MemoryNetwork(is_open=False)
    listener = await network.bind(End, "127.0.0.1", 7, 10)
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            await network.connect(End, "127.0.0.1", 7, None)
        listener.start()
        with pytest.raises(OSError, match="in use"):
            await network.bind(End, "127.0.0.1", 7, 10)
        listener.stop()
        listener = await network.bind(End, "127.0.0.1", 7, 10)
    with pytest.raises(ConnectionRefusedError):
        await network.connect(End, "127.0.0.1", 9, None)


async def test_an_open_network_serves_sockets_as_well() -> None:
    network = MemoryNetwork()
    listener, servers = await listening(network)
    assert network.listening_sockets == 1
    _, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    writer.write(b"from outside")
    async with asyncio.timeout(30):
        while not servers or not servers[0].data:  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.001)
    assert network.clients_outside == 1
    writer.close()
    listener.stop()
    assert network.listening_sockets == 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such reservation")
async def test_no_other_program_gets_the_port_of_a_server_that_restarts() -> None:
    network = MemoryNetwork()
    port = 0
    for _ in range(2):
        listener = await network.bind(End, "127.0.0.1", port, 10)
        listener.start()
        port = listener.port
        listener.stop()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
    network.release_ports()
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
