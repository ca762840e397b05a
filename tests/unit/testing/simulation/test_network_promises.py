"""Tests that a simulated network keeps TCP's guarantees under any faults, and that equal seeds give equal histories."""

import asyncio
from collections.abc import Sequence
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.testing.simulation.simulated_links import End, Links, links, played

Step = tuple[str, int, float]
"""What happens; to which end, 0 or 1, or on the link from it; how long or how much."""

HARMLESS = ("write", "wait", "block", "unblock", "freeze", "thaw", "slow", "fast", "pieces", "whole", "pause", "resume")
HIGH_WATER_BYTES = 300
"""One write may reach it."""
BREAKING = ("cut", "half-way", "close", "abort", "kill", "power")


def steps(*kinds: str) -> st.SearchStrategy[list[Step]]:
    return st.lists(st.tuples(st.sampled_from(kinds), st.sampled_from([0, 1]), st.floats(0.001, 0.2)), max_size=40)


class Story:
    """A sequence of steps on one connection, and the data that both ends wrote."""

    def __init__(self, made: Links, ends: Sequence[End]) -> None:
        self.made = made
        self.ends = ends
        self.written = [b"", b""]
        self._numbers = count()

    async def play(self, kind: str, here: int, size: float) -> None:
        network, end, processes = self.made.network, self.ends[here], (self.made.client, self.made.server)
        way = (processes[here].name, processes[1 - here].name)
        if kind == "write":
            if end.transport.is_closing():
                return
            data = b"".join(next(self._numbers).to_bytes(2) for _ in range(int(size * 1000)))
            self.written[here] += data
            end.transport.write(data)
        elif kind == "wait":
            await asyncio.sleep(size)
        elif kind == "block":
            network.block(*way)
        elif kind == "unblock":
            network.unblock(*way)
        elif kind == "freeze":
            network.freeze(way[0])
        elif kind == "thaw":
            network.thaw(way[0])
        elif kind == "slow":
            network.slow_down(*way, size / 2, size)
        elif kind == "fast":
            network.speed_up(*way)
        elif kind in ("pieces", "whole"):
            network.in_pieces(*way, kind == "pieces")
        elif kind == "pause":
            end.transport.pause_reading()
        elif kind == "resume":
            end.transport.resume_reading()
        elif kind == "cut":
            network.cut(*way)
        elif kind == "half-way":
            network.cut_half_way(*way)
        elif kind == "close":
            end.transport.close()
        elif kind == "abort":
            end.transport.abort()
        else:
            network.died(processes[here], is_power=kind == "power")

    async def heal(self) -> None:
        for here in (0, 1):
            for kind in ("unblock", "thaw", "fast", "whole", "resume"):
                await self.play(kind, here, 0)
        await asyncio.sleep(10)

    def arrived(self) -> list[bytes]:
        """Returns the received data, in the order of the writers."""
        return [self.ends[1].data, self.ends[0].data]

    def is_in_order(self) -> bool:
        return all(sent.startswith(got) for sent, got in zip(self.written, self.arrived(), strict=True))


async def story_of(plan: list[Step], seed: int) -> tuple[Story, str]:
    made = links(seed)
    story = Story(made, await made.pair())
    for end in story.ends:
        end.transport.set_write_buffer_limits(high=HIGH_WATER_BYTES)
    for step in plan:
        await story.play(*step)
        assert story.is_in_order()
    await story.heal()
    return story, made.history.digest


@given(steps(*HARMLESS), st.integers(0, 3))
def test_all_that_was_written_arrives_in_order_once_everything_is_healed(plan: list[Step], seed: int) -> None:
    story, _ = played(story_of(plan, seed))
    assert story.arrived() == story.written
    assert [end.events.count("pause") for end in story.ends] == [end.events.count("resume") for end in story.ends]


@given(steps(*HARMLESS, *BREAKING), st.integers(0, 3))
def test_what_arrives_on_a_connection_that_breaks_is_the_beginning_of_what_was_written(plan: list[Step], seed: int) -> None:
    story, _ = played(story_of(plan, seed))
    assert story.is_in_order()
    for end in story.ends:
        assert sum(event.startswith(("closed", "lost")) for event in end.events) <= 1


@given(steps(*HARMLESS, *BREAKING), st.integers(0, 3))
def test_the_same_seed_and_the_same_faults_give_the_same_history(plan: list[Step], seed: int) -> None:
    assert played(story_of(plan, seed))[1] == played(story_of(plan, seed))[1]


def test_another_seed_gives_another_history() -> None:
    plan: list[Step] = [("write", 0, 0.1), ("wait", 0, 0.1)]
    assert played(story_of(plan, 1))[1] != played(story_of(plan, 2))[1]
