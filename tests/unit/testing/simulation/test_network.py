"""Tests that the links of a simulated world without faults keep TCP's guarantees."""

import asyncio
import contextvars
import errno
import ssl

import pytest

from tests.unit.testing.simulation.simulated_links import PORT, End, in_virtual_time, links, seconds_of

OWNER: contextvars.ContextVar[str] = contextvars.ContextVar("owner")


@in_virtual_time
async def test_what_one_end_writes_arrives_at_the_other_after_the_latency() -> None:
    made = links(latency_s=(0.25, 0.25))
    await made.listen()
    client = await made.connect()
    client.transport.write(b"1")
    client.transport.write(b"2")
    await asyncio.sleep(0.249)
    assert not made.accepted
    await asyncio.sleep(0.002)
    server = made.accepted[0]
    assert server.reads == [b"1", b"2"]
    server.transport.write(b"3")
    await asyncio.sleep(0.249)
    assert client.data == b""
    await asyncio.sleep(0.002)
    assert client.data == b"3"


@in_virtual_time
async def test_each_end_knows_both_addresses() -> None:
    client, server = await links().pair()
    assert client.transport.get_extra_info("peername") == ("10.0.0.2", PORT)
    assert server.transport.get_extra_info("peername") == client.transport.get_extra_info("sockname")
    assert client.transport.get_extra_info("sockname")[0] == "10.0.0.1"


@in_virtual_time
async def test_deliveries_of_very_different_latency_stay_in_order() -> None:
    client, server = await links(latency_s=(0.0, 1.0)).pair()
    await asyncio.sleep(1)
    for number in range(100):
        client.transport.write(bytes([number]))
        await asyncio.sleep(0.001)
    await asyncio.sleep(1)
    assert server.data == bytes(range(100))


@in_virtual_time
async def test_all_that_was_written_arrives_before_the_end() -> None:
    client, server = await links().pair()
    client.transport.write(b"last")
    client.transport.close()
    client.transport.write(b"too late")
    await asyncio.sleep(0.01)
    assert (server.data, server.events, client.events) == (b"last", ["end", "closed"], ["closed"])


@in_virtual_time
async def test_an_aborted_connection_is_reset_at_the_other_end() -> None:
    client, server = await links().pair()
    client.transport.abort()
    await asyncio.sleep(0.01)
    assert (server.events, client.events) == (["lost ConnectionResetError"], ["closed"])


@in_virtual_time
async def test_a_writer_pauses_when_much_is_under_way_or_unread_and_goes_on_when_it_is_read() -> None:
    client, server = await links().pair()
    client.transport.set_write_buffer_limits(high=10)
    client.transport.write(bytes(11))
    assert client.transport.get_write_buffer_size() == 11
    await asyncio.sleep(0.01)
    assert client.events == ["pause", "resume"]
    server.transport.pause_reading()
    client.transport.write(bytes(6))
    client.transport.write(bytes(6))
    await asyncio.sleep(0.01)
    assert (client.events[2:], client.transport.get_write_buffer_size(), len(server.data)) == (["pause"], 12, 11)
    server.transport.resume_reading()
    await asyncio.sleep(0.01)
    assert (client.events[3:], client.transport.get_write_buffer_size(), len(server.data)) == (["resume"], 0, 23)


@in_virtual_time
async def test_data_that_arrives_while_a_reader_goes_on_stays_behind_earlier_data() -> None:
    client, server = await links(latency_s=(1.0, 1.0)).pair()
    server.transport.pause_reading()
    client.transport.write(b"1")
    await asyncio.sleep(2)
    loop = asyncio.get_running_loop()
    loop.call_later(1, server.transport.resume_reading)
    client.transport.write(b"2")
    await asyncio.sleep(2)
    assert server.data == b"12"


@in_virtual_time
async def test_nobody_listens_at_a_port_before_start_and_after_stop() -> None:
    made = links(latency_s=(0.5, 0.5))
    assert await seconds_of(made.connect(), ConnectionRefusedError) == pytest.approx(1.0)
    bound = await made.network.at(made.server).bind(End, "10.0.0.2", PORT, 10)
    await seconds_of(made.connect(), ConnectionRefusedError)
    bound.start()
    assert await seconds_of(made.connect()) == pytest.approx(1.0)
    bound.stop()
    await seconds_of(made.connect(), ConnectionRefusedError)


@in_virtual_time
async def test_a_connection_that_was_not_accepted_before_the_listener_stopped_is_reset() -> None:
    made = links()
    await made.listen()
    client = await made.connect()
    assert made.listener is not None
    made.listener.stop()
    await asyncio.sleep(0.01)
    assert (made.accepted, client.events) == ([], ["lost ConnectionResetError"])


@in_virtual_time
async def test_a_port_is_taken_once_and_on_its_own_machine_only() -> None:
    made = links()
    await made.listen()
    with pytest.raises(OSError, match="in use"):
        await made.network.at(made.server).bind(End, "", PORT, 10)
    with pytest.raises(OSError, match="assign") as raised:
        await made.network.at(made.server).bind(End, "10.0.0.1", PORT, 10)
    assert raised.value.errno == errno.EADDRNOTAVAIL
    await made.network.at(made.client).bind(End, "", PORT, 10)
    free = [(await made.network.at(made.server).bind(End, "", 0, 10)).port for _ in range(3)]
    assert len({*free, 0}) == 4


@in_virtual_time
async def test_a_port_of_the_loopback_address_is_reached_from_its_own_machine_only() -> None:
    made = links()
    bound = await made.network.at(made.server).bind(End, "127.0.0.1", PORT, 10)
    bound.start()
    await seconds_of(made.connect(), ConnectionRefusedError)
    end = await made.network.at(made.server).connect(End, "localhost", PORT, None)
    assert end.transport.get_extra_info("peername") == ("127.0.0.1", PORT)


@in_virtual_time
async def test_a_process_is_found_by_its_name() -> None:
    made = links()
    await made.listen()
    assert (await made.connect("server")).transport.get_extra_info("peername") == ("10.0.0.2", PORT)
    with pytest.raises(OSError, match="unknown process name: nobody"):
        await made.connect("nobody")


@in_virtual_time
async def test_nobody_answers_at_an_address_without_a_machine() -> None:
    assert await seconds_of(links().connect("10.9.9.9"), TimeoutError) == pytest.approx(20, abs=0.01)


@in_virtual_time
async def test_an_attempt_that_was_given_up_leaves_nothing() -> None:
    made = links()
    await made.listen()
    attempt = asyncio.ensure_future(made.connect())
    await asyncio.sleep(0)
    attempt.cancel()
    await asyncio.sleep(1)
    assert attempt.cancelled()
    assert made.accepted == []


@in_virtual_time
async def test_each_end_is_called_in_the_context_of_its_process() -> None:
    made = links()
    seen: list[str] = []

    class Asking(End):
        def data_received(self, data: bytes) -> None:
            seen.append(OWNER.get())

    made.client.context.run(OWNER.set, "client")
    made.server.context.run(OWNER.set, "server")
    bound = await made.network.at(made.server).bind(Asking, "", PORT, 10)
    bound.start()
    client = await made.network.at(made.client).connect(Asking, "10.0.0.2", PORT, None)
    client.transport.write(b"1")
    await asyncio.sleep(0.01)
    assert seen == ["server"]


@in_virtual_time
async def test_tls_is_refused() -> None:
    made = links()
    with pytest.raises(ValueError, match="does not support TLS"):
        await made.network.at(made.client).connect(End, "10.0.0.2", PORT, ssl.create_default_context())
