"""Holds all links of a simulated network. A link is created when it is first used."""

import random
from collections.abc import Callable

from rocketmq_broker.testing.simulation.history import History
from rocketmq_broker.testing.simulation.network.link import Link, link_name
from rocketmq_broker.testing.simulation.network.notes import Observer
from rocketmq_broker.testing.simulation.network.write_faults import FrameWatch


class LinkTable:
    """The links between processes, keyed by the names of sender and receiver."""

    def __init__(self, history: History, chance_of: Callable[[str], random.Random], latency_s: tuple[float, float]) -> None:
        """Creates an empty table. `chance_of` returns a link's random stream. `latency_s` is the normal range of the latency."""
        self._history = history
        self._chance_of = chance_of
        self._latency_s = latency_s
        self._links: dict[tuple[str, str], Link] = {}
        self._watches: dict[str, list[FrameWatch]] = {}
        self._frozen: dict[str, None] = {}
        self.observers: list[Observer] = []
        """The observers of all links."""

    def link(self, sender: str, receiver: str) -> Link:
        """Returns the link from one process to another."""
        link = self._links.get((sender, receiver))
        if link is None:
            chance = self._chance_of(link_name(sender, receiver))
            watches = self._watches.setdefault(sender, [])
            link = self._links[sender, receiver] = Link(sender, receiver, chance, self._history, watches, self._latency_s)
            link.observers = self.observers
            link.freeze(receiver in self._frozen)
        return link

    def freeze(self, name: str, is_frozen: bool) -> None:
        """Sets whether a process is frozen, on all links to it."""
        self._frozen.pop(name, None)
        if is_frozen:
            self._frozen[name] = None
        for link in self._links.values():
            if link.receiver == name:
                link.freeze(is_frozen)

    def watch(self, name: str, watch: FrameWatch) -> None:
        """Watches the frames that a process sends, on all its links."""
        self._watches.setdefault(name, []).append(watch)
        for link in self._links.values():
            if link.sender == name:
                link.write_faults.changed()
