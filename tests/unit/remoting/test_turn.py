"""Tests turns of the event loop, shared by tasks that need more than one turn."""

import asyncio

from rocketmq_broker.remoting.connections.turn import Turn


async def test_a_turn_lasts_until_its_time_is_up_and_the_next_begins_when_the_loop_comes_round() -> None:
    turn = Turn(asyncio.get_running_loop(), lambda: 0, seconds=0)
    assert not turn.is_over()
    assert turn.is_over()
    await asyncio.sleep(0)
    assert not turn.is_over()


async def test_who_was_called_waits_behind_those_who_were_not() -> None:
    turn = Turn(asyncio.get_running_loop(), lambda: 0, seconds=0)
    called: list[str] = []

    def greedy() -> None:
        called.append("greedy")
        while not turn.is_over():
            pass
        if len(called) < 10:
            turn.later(greedy)

    turn.later(greedy)
    turn.later(lambda: called.append("modest"))
    for _ in range(10):
        await asyncio.sleep(0)
    assert "modest" in called[:2]
