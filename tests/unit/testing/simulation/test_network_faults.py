"""Tests faults on the links of a simulated world, and their effect on each end."""

import asyncio
import functools
import struct
from collections.abc import Callable

import pytest

from rocketmq_broker.testing.simulation.network import SimulatedNetwork
from rocketmq_broker.testing.simulation.network.notes import Fired
from tests.unit.testing.simulation.simulated_links import End, Links, in_virtual_time, links, seconds_of


async def a_moment(seconds: float = 0.05) -> None:
    await asyncio.sleep(seconds)


async def pair_of_links() -> tuple[Links, End, End]:
    """Returns a network with the client's end and the server's end of a connection."""
    made = links()
    return made, *await made.pair()


@in_virtual_time
async def test_a_cut_resets_the_connections_of_both_processes_and_no_others() -> None:
    made = links()
    first, second = await made.pair(), await made.pair()
    own = await made.network.at(made.server).connect(End, "10.0.0.2", 10911, None)
    await a_moment()
    first[0].transport.write(b"lost")
    assert made.network.cut("server", "client") == 2
    await a_moment()
    assert [end.events for end in (*first, *second)] == [["lost ConnectionResetError"]] * 4
    assert (first[1].data, own.events) == (b"", [])
    assert made.network.cut("client", "server") == 0


@in_virtual_time
async def test_a_write_cut_half_way_arrives_in_part_and_then_both_ends_are_reset() -> None:
    made, client, server = await pair_of_links()
    made.network.cut_half_way("client", "server")
    server.transport.write(b"the other direction")
    client.transport.write(bytes(range(100)))
    client.transport.write(b"never")
    await a_moment()
    assert 0 < len(server.data) < 100
    assert bytes(range(100)).startswith(server.data)
    assert client.data == b"the other direction"
    assert (client.events, server.events) == (["lost ConnectionResetError"], ["lost ConnectionResetError"])
    client, server = await made.pair()
    client.transport.write(b"whole")
    await a_moment()
    assert (server.data, made.kinds()) == (b"whole", ["cut-half-way", "half-written"])


@in_virtual_time
async def test_a_blocked_direction_holds_data_until_it_is_free() -> None:
    made, client, server = await pair_of_links()
    client.transport.write(b"1")
    made.network.block("client", "server")
    client.transport.write(b"2")
    server.transport.write(b"back")
    await a_moment(100)
    client.transport.write(b"3")
    await a_moment()
    assert (server.data, client.data) == (b"", b"back")
    made.network.unblock("client", "server")
    client.transport.write(b"4")
    await a_moment()
    assert (server.data, server.events, client.events) == (b"1234", [], [])


@pytest.mark.parametrize(("a", "b"), [("client", "server"), ("server", "client")])
@in_virtual_time
async def test_attempts_to_connect_hang_while_either_direction_is_blocked(a: str, b: str) -> None:
    made = links()
    await made.listen()
    made.network.block(a, b)
    assert await seconds_of(made.connect(), TimeoutError) == pytest.approx(20, abs=0.01)
    attempt = asyncio.ensure_future(made.connect())
    await a_moment(5)
    assert not attempt.done()
    made.network.unblock(a, b)
    assert await seconds_of(attempt) == pytest.approx(2, abs=0.1)


@in_virtual_time
async def test_a_cut_reaches_the_ends_of_a_blocked_link() -> None:
    made, client, server = await pair_of_links()
    made.network.block("client", "server")
    assert made.network.cut("client", "server") == 1
    await a_moment()
    assert (client.events, server.events) == (["lost ConnectionResetError"], ["lost ConnectionResetError"])


@in_virtual_time
async def test_a_blocked_writer_pauses_when_much_waits() -> None:
    made, client, _ = await pair_of_links()
    made.network.block("client", "server")
    client.transport.set_write_buffer_limits(high=10)
    client.transport.write(bytes(11))
    await a_moment()
    assert client.events == ["pause"]
    made.network.unblock("client", "server")
    await a_moment()
    assert client.events == ["pause", "resume"]


def frame(text: bytes) -> bytes:
    return struct.pack(">I", len(text)) + text


@in_virtual_time
async def test_so_many_frames_are_lost_and_the_connection_lives() -> None:
    made, client, server = await pair_of_links()
    made.network.lose_frames("client", "server", 3)
    client.transport.write(frame(b"1"))
    server.transport.write(frame(b"back"))
    client.transport.write(frame(b"2") + frame(b"3") + frame(b"4"))
    client.transport.write(frame(b"5"))
    await a_moment()
    assert (server.data, client.data) == (frame(b"4") + frame(b"5"), frame(b"back"))
    assert made.kinds() == ["lose-frames", *["frame-lost"] * 3]


@in_virtual_time
async def test_a_slow_link_delivers_late_and_a_fast_one_overtakes_nothing() -> None:
    made, client, server = await pair_of_links()
    made.network.slow_down("client", "server", 5, 6)
    client.transport.write(b"1")
    made.network.speed_up("client", "server")
    client.transport.write(b"2")
    server.transport.write(b"at once")
    await a_moment(4.9)
    assert (server.data, client.data) == (b"", b"at once")
    await a_moment(1.2)
    assert server.data == b"12"
    client.transport.write(b"3")
    await a_moment()
    assert server.data == b"123"


@in_virtual_time
async def test_what_is_held_on_a_slow_link_does_not_arrive_early() -> None:
    made, client, server = await pair_of_links()
    made.network.slow_down("client", "server", 5, 6)
    made.network.block("client", "server")
    client.transport.write(b"1")
    made.network.speed_up("client", "server")
    made.network.unblock("client", "server")
    await a_moment(4.9)
    assert server.data == b""
    await a_moment(1.2)
    assert server.data == b"1"


@pytest.mark.parametrize("latency_s", [(-1, 1), (2, 1)])
@in_virtual_time
async def test_an_impossible_latency_is_refused(latency_s: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="latency must be a range"):
        links().network.slow_down("client", "server", *latency_s)


@in_virtual_time
async def test_a_write_in_pieces_arrives_whole_in_many_callbacks() -> None:
    made, client, server = await pair_of_links()
    made.network.in_pieces("client", "server", True)
    data = bytes(range(256)) * 400
    client.transport.write(data)
    await a_moment(1)
    assert server.data == data
    assert {len(piece) for piece in server.reads[:48]} <= set(range(1, 8))
    assert 48 < len(server.reads) < 500
    made.network.in_pieces("client", "server", False)
    client.transport.write(data)
    await a_moment()
    assert server.reads[-1] == data


@in_virtual_time
async def test_a_write_in_pieces_may_be_cut_as_well() -> None:
    made, client, server = await pair_of_links()
    made.network.in_pieces("client", "server", True)
    made.network.cut_half_way("client", "server")
    client.transport.write(bytes(100))
    await a_moment(1)
    assert 0 < len(server.data) < 100
    assert server.events == ["lost ConnectionResetError"]


# death


@in_virtual_time
async def test_the_kernel_of_a_killed_process_sends_what_was_written_and_then_a_reset() -> None:
    made, client, server = await pair_of_links()
    server.transport.write(b"written before")
    client.transport.write(b"never read")
    made.network.died(made.server, is_power=False)
    server.transport.write(b"nobody is left to write this")
    await a_moment()
    assert (client.data, client.events) == (b"written before", ["lost ConnectionResetError"])
    assert (server.data, server.events) == (b"", [])
    await seconds_of(made.connect(), ConnectionRefusedError)


@in_virtual_time
async def test_a_killed_process_that_starts_again_has_its_port_again() -> None:
    made, old, _ = await pair_of_links()
    made.network.died(made.server, is_power=False)
    made.restart_server()
    client, server = await made.pair()
    client.transport.write(b"hello")
    await a_moment()
    assert (old.events, server.data) == (["lost ConnectionResetError"], b"hello")


@in_virtual_time
async def test_a_killed_client_leaves_the_server_a_reset() -> None:
    made, client, server = await pair_of_links()
    made.network.died(made.client, is_power=False)
    await a_moment()
    assert (server.events, client.events) == (["lost ConnectionResetError"], [])


async def dark(made: Links) -> tuple[End, End]:
    client, server = await made.pair()
    made.network.died(made.server, is_power=True)
    await a_moment(1000)
    assert client.events == []
    return client, server


@in_virtual_time
async def test_nobody_sees_a_power_failure_before_writing_and_a_restarted_machine_resets() -> None:
    made = links()
    client, _ = await dark(made)
    made.restart_server()
    made.network.at(made.server)
    await a_moment(100)
    assert client.events == []
    client.transport.write(b"still there?")
    await a_moment()
    assert client.events == ["lost ConnectionResetError"]


@in_virtual_time
async def test_what_is_written_to_a_dark_machine_is_sent_again_until_the_machine_is_back() -> None:
    made = links()
    client, _ = await dark(made)
    client.transport.write(b"still there?")
    await a_moment(60)
    assert client.events == []
    made.restart_server()
    made.network.at(made.server)
    assert client.events == []
    await a_moment(60)
    assert client.events == ["lost ConnectionResetError"]


@in_virtual_time
async def test_patience_with_a_dark_machine_ends_after_a_quarter_of_an_hour() -> None:
    made = links()
    client, _ = await dark(made)
    began_s = asyncio.get_running_loop().time()
    client.transport.write(b"still there?")
    await a_moment(1000)
    assert client.events == ["lost TimeoutError"]
    assert client.ended_s == pytest.approx(began_s + 924.6, abs=0.1)


@in_virtual_time
async def test_what_was_under_way_to_a_dark_machine_is_sent_again_as_well() -> None:
    made, client, _ = await pair_of_links()
    client.transport.write(b"under way")
    made.network.died(made.server, is_power=True)
    await a_moment(1000)
    assert client.events == ["lost TimeoutError"]


@in_virtual_time
async def test_connecting_to_a_dark_machine_hangs() -> None:
    made = links()
    await dark(made)
    assert await seconds_of(made.connect(), TimeoutError) == pytest.approx(20, abs=0.01)
    made.network.at(made.server)
    await seconds_of(made.connect(), ConnectionRefusedError)


@in_virtual_time
async def test_what_had_left_a_machine_arrives_although_its_power_fails() -> None:
    made, client, server = await pair_of_links()
    server.transport.write(b"left")
    made.network.died(made.server, is_power=True)
    await a_moment()
    assert (client.data, client.events) == (b"left", [])


@in_virtual_time
async def test_what_a_blocked_link_held_is_gone_when_the_power_of_its_sender_fails() -> None:
    made, client, server = await pair_of_links()
    made.network.block("server", "client")
    server.transport.write(b"held")
    made.network.died(made.server, is_power=True)
    made.network.unblock("server", "client")
    await a_moment()
    assert client.data == b""


@in_virtual_time
async def test_nothing_leaves_after_the_frame_at_which_the_power_fails() -> None:
    made, client, server = await pair_of_links()
    made.network.at_frame("client", 2, lambda: made.network.died(made.client, is_power=True), is_after=False)
    client.transport.write(frame(b"1") + frame(b"2") + frame(b"3"))
    await a_moment()
    assert server.data == frame(b"1")


# a stopped process


@in_virtual_time
async def test_what_is_sent_to_a_frozen_process_waits_and_arrives_in_order() -> None:
    made, client, server = await pair_of_links()
    made.network.freeze("server")
    client.transport.write(b"1")
    await a_moment(100)
    other = await made.connect()
    other.transport.write(b"other")
    client.transport.write(b"2")
    client.transport.close()
    await a_moment(100)
    assert (server.reads, server.events, len(made.accepted)) == ([], [], 1)
    made.network.thaw("server")
    await a_moment()
    assert (server.reads, server.events, made.accepted[1].data) == ([b"12"], ["end", "closed"], b"other")


@in_virtual_time
async def test_a_frozen_process_on_a_blocked_link_gets_its_data_when_both_have_ended() -> None:
    made, client, server = await pair_of_links()
    made.network.freeze("server")
    made.network.block("client", "server")
    client.transport.write(b"1")
    made.network.thaw("server")
    await a_moment()
    assert server.data == b""
    made.network.unblock("client", "server")
    await a_moment()
    assert server.data == b"1"


@in_virtual_time
async def test_a_frozen_process_sees_a_cut_when_it_goes_on() -> None:
    made, client, server = await pair_of_links()
    made.network.freeze("server")
    made.network.cut("client", "server")
    await a_moment()
    assert (client.events, server.events) == (["lost ConnectionResetError"], [])
    made.network.thaw("server")
    await a_moment()
    assert server.events == ["lost ConnectionResetError"]


@in_virtual_time
async def test_a_process_killed_while_it_was_frozen_starts_again_unfrozen() -> None:
    made = links()
    await made.pair()
    made.network.freeze("server")
    made.network.died(made.server, is_power=False)
    made.restart_server()
    client, server = await made.pair()
    client.transport.write(b"hello")
    await a_moment()
    assert server.data == b"hello"


# which faults had an effect


FAULTS: dict[str, Callable[[SimulatedNetwork, Fired], object]] = {
    "block": lambda network, fired: network.block("client", "server", fired=fired),
    "cut-half-way": lambda network, fired: network.cut_half_way("client", "server", fired=fired),
    "lose-frames": lambda network, fired: network.lose_frames("client", "server", 1, fired=fired),
    "slow": lambda network, fired: network.slow_down("client", "server", 1, 2, fired=fired),
    "in-pieces": lambda network, fired: network.in_pieces("client", "server", True, fired=fired),
}


@pytest.mark.parametrize("fault", FAULTS)
@in_virtual_time
async def test_a_fault_has_fired_once_when_it_has_hit_a_write(fault: str) -> None:
    made, client, server = await pair_of_links()
    fired: list[str] = []
    FAULTS[fault](made.network, lambda: fired.append(fault))
    server.transport.write(frame(b"the other direction"))
    await a_moment()
    assert fired == []
    for _ in range(2):
        client.transport.write(frame(b"hit"))
        await a_moment()
    assert fired == [fault]


@in_virtual_time
async def test_a_block_has_fired_when_an_attempt_to_connect_hangs() -> None:
    made = links()
    fired: list[str] = []
    made.network.block("server", "client", fired=lambda: fired.append("block"))
    await seconds_of(made.connect(), TimeoutError)
    assert fired == ["block"]


@in_virtual_time
async def test_a_block_has_fired_when_it_holds_what_was_under_way() -> None:
    made, client, _ = await pair_of_links()
    client.transport.write(b"under way")
    fired: list[str] = []
    made.network.block("client", "server", fired=lambda: fired.append("block"))
    assert fired == []
    await a_moment()
    assert fired == ["block"]


@in_virtual_time
async def test_a_later_frame_is_cut_and_those_before_it_arrive() -> None:
    made, client, server = await pair_of_links()
    made.network.cut_half_way("client", "server", nth=3)
    client.transport.write(frame(b"1"))
    client.transport.write(frame(b"2") + frame(b"3") + frame(b"4"))
    await a_moment()
    whole = frame(b"1") + frame(b"2")
    assert server.data.startswith(whole)
    assert frame(b"3").startswith(server.data[len(whole) :])
    assert len(whole) < len(server.data) < len(whole + frame(b"3"))
    assert server.events == client.events == ["lost ConnectionResetError"]


@in_virtual_time
async def test_something_happens_between_two_frames_of_a_process_to_whomever_they_go() -> None:
    made = links()
    (first, one), (second, two) = await made.pair(), await made.pair()
    seen: list[tuple[str, int]] = []
    for is_after in (False, True):
        act = functools.partial(lambda it: seen.append((it, first.transport.get_write_buffer_size())), f"after: {is_after}")
        made.network.at_frame("client", 3, act, is_after=is_after)
    second.transport.write(frame(b"1"))
    first.transport.write(frame(b"2") + frame(b"3") + frame(b"4"))
    assert seen == [("after: False", 5), ("after: True", 10)]
    await a_moment()
    assert (one.data, two.data) == (frame(b"2") + frame(b"3") + frame(b"4"), frame(b"1"))


@in_virtual_time
async def test_each_fault_is_noted_at_its_link_or_process() -> None:
    made = links()
    network = made.network
    network.block("client", "server")
    network.unblock("client", "server")
    network.slow_down("client", "server", 1, 2)
    network.speed_up("client", "server")
    network.in_pieces("client", "server", True)
    network.in_pieces("client", "server", False)
    network.cut("client", "server")
    network.freeze("server")
    network.thaw("server")
    network.died(made.server, is_power=True)
    assert made.kinds() == [
        "blocked", "unblocked", "slow", "fast", "in-pieces", "in-one-piece", "cut", "frozen", "thawed", "connections-of-dead",
    ]  # fmt: skip
    assert [happening.process for happening in made.history.happenings] == [*["client -> server"] * 7, *["server"] * 3]
