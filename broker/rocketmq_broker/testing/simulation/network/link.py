"""Simulates the link from one process to another, with its latency and faults. The opposite direction is another link."""

import random

from rocketmq_broker.testing.simulation.history import History
from rocketmq_broker.testing.simulation.network.notes import Fired, Observer
from rocketmq_broker.testing.simulation.network.write_faults import FrameWatch, WriteFaults


class Link:
    """The link from process `sender` to process `receiver`, shared by all their connections."""

    def __init__(
        self,
        sender: str,
        receiver: str,
        chance: random.Random,
        history: History,
        watches: list[FrameWatch],
        latency_s: tuple[float, float],
    ) -> None:
        """Creates a link. `watches` are the sender's frame watches. `latency_s` is the normal range of the latency."""
        self.name = link_name(sender, receiver)
        self.sender = sender
        self.receiver = receiver
        self.mix = history.mix
        self.mix_data = history.mix_data
        self.write_faults = WriteFaults(self.name, chance, history, watches)
        self.observers: list[Observer] = []
        """Observers of each write, before any faults."""
        self.is_blocked = False
        self.is_frozen = False
        self.is_held = False
        """Whether deliveries are held, because the link is blocked or the receiver is frozen."""
        self._chance = chance
        self._usual_latency_s = latency_s
        self._slow_fired: Fired | None = None
        self._block_fired: Fired | None = None
        self.speed_up()

    def speed_up(self) -> None:
        """Restores the normal latency."""
        self._set_latency(*self._usual_latency_s)
        self._slow_fired = None

    def slow_down(self, min_s: float, max_s: float, fired: Fired) -> None:
        """Sets the range of the latency in seconds. Raises ValueError for a negative or reversed range."""
        if not 0 <= min_s <= max_s:
            raise ValueError(f"{self.name}: latency must be a range of 0 s or more, not {min_s} s to {max_s} s")
        self._set_latency(min_s, max_s)
        self._slow_fired = fired

    def latency_s(self) -> float:
        """Returns a random latency for one delivery."""
        if self._slow_fired is not None:
            fired, self._slow_fired = self._slow_fired, None
            fired()
        return self._min_s + self._spread_s * self._chance.random()

    def block(self, fired: Fired) -> None:
        """Holds all deliveries."""
        self._block_fired = fired
        self._hold(True, self.is_frozen)

    def unblock(self) -> None:
        """Stops holding deliveries, unless the receiver is frozen."""
        self._block_fired = None
        self._hold(False, self.is_frozen)

    def freeze(self, is_frozen: bool) -> None:
        """Sets whether the receiver is frozen. Deliveries to a frozen receiver are held."""
        self._hold(self.is_blocked, is_frozen)

    def held_back(self) -> None:
        """Records that the link has delayed a delivery."""
        if self.is_blocked and self._block_fired is not None:
            fired, self._block_fired = self._block_fired, None
            fired()

    def _set_latency(self, min_s: float, max_s: float) -> None:
        self._min_s = min_s
        self._spread_s = max_s - min_s

    def _hold(self, is_blocked: bool, is_frozen: bool) -> None:
        self.is_blocked, self.is_frozen = is_blocked, is_frozen
        self.is_held = is_blocked or is_frozen


def link_name(sender: str, receiver: str) -> str:
    """Returns the name of the link, which is also the name of its random stream."""
    return f"{sender} -> {receiver}"
