"""The tasks that a client runs every 30 s keep to their schedule."""

import asyncio

from rocketmq_broker.client.instance.rhythm import Rhythm
from rocketmq_broker.testing.virtual_time import VirtualTime
from tests.passing_time import in_virtual_time


def test_what_is_done_sooner_does_not_move_the_beat_and_a_timer_that_fires_early_counts_as_one() -> None:
    async def work(virtual: VirtualTime) -> list[float]:
        begun_s = asyncio.get_running_loop().time()
        rhythm, beats = Rhythm(30), []
        for passed_s, sooner_s in ((0, None), (7, None), (1, 2.0), (21, 60.0), (0.999_999_9, None), (40, None)):
            await virtual.advance(passed_s)
            beats.append(rhythm.next_s(sooner_s) - begun_s)
        return [round(beat_s, 3) for beat_s in beats]

    assert in_virtual_time(work) == [30, 30, 10, 30, 60, 100]
