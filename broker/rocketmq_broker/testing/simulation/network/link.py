"""The link from one process to another: its latency, whether it is held, and its faults. The way back is another link."""

from __future__ import annotations

import random

from rocketmq_broker.testing.simulation.network.notes import Fired, Observer
from rocketmq_broker.testing.simulation.network.ports import NetworkHistory
from rocketmq_broker.testing.simulation.network.write_faults import FrameWatch, WriteFaults


class Link:
    """The way from process `sender` to process `receiver`, for all their connections."""

    def __init__(
        self,
        sender: str,
        receiver: str,
        chance: random.Random,
        history: NetworkHistory,
        watches: list[FrameWatch],
        latency_s: tuple[float, float],
    ) -> None:
        """`watches` are those of the sender; `latency_s` has the usual limits of the time of one delivery."""
        self.name = link_name(sender, receiver)
        self.sender = sender
        self.receiver = receiver
        self.mix = history.mix
        self.mix_data = history.mix_data
        self.write_faults = WriteFaults(self.name, chance, history, watches)
        self.observers: list[Observer] = []
        """They see each write before any fault does."""
        self.is_blocked = False
        self.is_frozen = False
        self.is_held = False
        """Whether nothing arrives: the link is blocked, or the receiver is frozen."""
        self._chance = chance
        self._usual_latency_s = latency_s
        self._slow_fired: Fired | None = None
        self._block_fired: Fired | None = None
        self.speed_up()

    def speed_up(self) -> None:
        """Sets the usual limits of the latency."""
        self._set_latency(*self._usual_latency_s)
        self._slow_fired = None

    def slow_down(self, least_s: float, most_s: float, fired: Fired) -> None:
        """Sets the shortest and the longest latency. Raises ValueError for a negative or reversed range."""
        if not 0 <= least_s <= most_s:
            raise ValueError(f"{self.name}: no latency lies between {least_s} s and {most_s} s")
        self._set_latency(least_s, most_s)
        self._slow_fired = fired

    def latency_s(self) -> float:
        """Returns the latency of one delivery, by chance."""
        if self._slow_fired is not None:
            fired, self._slow_fired = self._slow_fired, None
            fired()
        return self._least_s + self._spread_s * self._chance.random()

    def block(self, fired: Fired) -> None:
        """Holds everything on the link."""
        self._block_fired = fired
        self._hold(True, self.is_frozen)

    def unblock(self) -> None:
        """Lets everything through, unless the receiver is frozen."""
        self._block_fired = None
        self._hold(False, self.is_frozen)

    def freeze(self, is_frozen: bool) -> None:
        """Sets whether the receiver is frozen."""
        self._hold(self.is_blocked, is_frozen)

    def held_back(self) -> None:
        """Notes that the link has held something back."""
        if self.is_blocked and self._block_fired is not None:
            fired, self._block_fired = self._block_fired, None
            fired()

    def _set_latency(self, least_s: float, most_s: float) -> None:
        self._least_s = least_s
        self._spread_s = most_s - least_s

    def _hold(self, is_blocked: bool, is_frozen: bool) -> None:
        self.is_blocked, self.is_frozen = is_blocked, is_frozen
        self.is_held = is_blocked or is_frozen


def link_name(sender: str, receiver: str) -> str:
    """Returns the name of the link, which is also the name of its stream of chance."""
    return f"{sender} -> {receiver}"
