"""The link from one process to another: its latency, and the faults on it. The other direction is another link."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Final

from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.errors import ProtocolError
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.testing.simulation.network.ports import NetworkHistory
from rocketmq_broker.testing.tapped import frames

_SMALL_PIECES: Final = 48
_LARGEST_SMALL_PIECE_BYTES: Final = 7
_LARGE_PIECES: Final = 16
_KNOWN_CODES: Final = frozenset(RequestCode)


Observer = Callable[[str, str, bytes], None]
"""Gets the names of sender and receiver and what is written. It may raise Killed: then nothing is sent."""


class NetworkNote(StrEnum):
    """The kinds of happenings that the network notes."""

    CUT = "cut"
    CUT_HALF_WAY = "cut-half-way"
    HALF_WRITTEN = "half-written"
    """A write was cut half-way."""
    BLOCKED = "blocked"
    UNBLOCKED = "unblocked"
    LOSE_FRAMES = "lose-frames"
    FRAME_LOST = "frame-lost"
    SLOW = "slow"
    FAST = "fast"
    IN_PIECES = "in-pieces"
    IN_ONE_PIECE = "in-one-piece"
    CONNECTIONS_OF_DEAD = "connections-of-dead"
    FROZEN = "frozen"
    THAWED = "thawed"


class Link:
    """The way from process `sender` to process `receiver`, for all their connections."""

    def __init__(
        self, sender: str, receiver: str, chance: random.Random, history: NetworkHistory, latency_s: tuple[float, float]
    ) -> None:
        """`latency_s` has the shortest and the longest time of one delivery."""
        self.name = link_name(sender, receiver)
        self.sender = sender
        self.receiver = receiver
        self.chance = chance
        self.history = history
        self.is_blocked = False
        self.is_frozen = False
        self.is_held = False
        """Whether nothing arrives: the link is blocked, or the receiver is frozen."""
        self.observers: list[Observer] = []
        """All who see each write before it is sent."""
        self.has_faulty_writes = False
        """Whether `written` must see each write."""
        self.frames_to_lose = 0
        self._cuts_next_write = False
        self._is_in_pieces = False
        self.take(*latency_s)

    def take(self, least_s: float, most_s: float) -> None:
        """Sets the shortest and the longest latency. Raises ValueError for a negative or reversed range."""
        if not 0 <= least_s <= most_s:
            raise ValueError(f"{self.name}: no latency lies between {least_s} s and {most_s} s")
        self._least_s = least_s
        self._spread_s = most_s - least_s

    def latency_s(self) -> float:
        """Returns the latency of one delivery, by chance."""
        return self._least_s + self._spread_s * self.chance.random()

    def hold(self, *, is_blocked: bool | None = None, is_frozen: bool | None = None) -> None:
        """Sets whether the link is blocked, or its receiver frozen; None leaves it as it is."""
        self.is_blocked = self.is_blocked if is_blocked is None else is_blocked
        self.is_frozen = self.is_frozen if is_frozen is None else is_frozen
        self.is_held = self.is_blocked or self.is_frozen

    # faulty writes

    def lose_frames(self, count: int) -> None:
        """Loses so many frames more."""
        self.frames_to_lose += count
        self._note_faults()

    def cut_next_write(self) -> None:
        """Lets the next write arrive in part only."""
        self._cuts_next_write = True
        self._note_faults()

    def in_pieces(self, is_on: bool) -> None:
        """Sets whether each write arrives in small pieces."""
        self._is_in_pieces = is_on
        self._note_faults()

    def written(self, data: bytes) -> tuple[Iterator[bytes], bool]:
        """Returns the pieces of one write that arrive, and whether the connection breaks after them."""
        if self.frames_to_lose:
            data = b"".join(self._kept(data))
        is_cut = self._cuts_next_write and bool(data)
        if is_cut:
            self._cuts_next_write = False
            arriving = self.chance.randrange(1, len(data)) if len(data) > 1 else 0
            self._note(NetworkNote.HALF_WRITTEN, f"{arriving} of {len(data)} bytes arrive, and then the connection breaks")
            data = data[:arriving]
        self._note_faults()
        if self._is_in_pieces:
            return self._pieces(data), is_cut
        return iter([data] if data else []), is_cut

    def _kept(self, data: bytes) -> Iterator[bytes]:
        """Yields the frames that are not lost. Each write of remoting begins with a frame's first byte."""
        for frame in frames(data):
            if self.frames_to_lose:
                self.frames_to_lose -= 1
                self._note(NetworkNote.FRAME_LOST, f"{_told(frame)} is lost")
            else:
                yield frame

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        """Yields pieces of a few bytes, and larger ones of a long write's rest: it would else take thousands."""
        begin = count = 0
        largest = _LARGEST_SMALL_PIECE_BYTES
        while begin < len(data):
            if count == _SMALL_PIECES:
                largest = max(largest, 2 * (len(data) - begin) // _LARGE_PIECES)
            end = begin + self.chance.randint(1, largest)
            yield data[begin:end]
            begin, count = end, count + 1

    def _note_faults(self) -> None:
        self.has_faulty_writes = self.frames_to_lose > 0 or self._cuts_next_write or self._is_in_pieces

    def _note(self, kind: NetworkNote, text: str) -> None:
        self.history.note(self.name, kind, text)


def link_name(sender: str, receiver: str) -> str:
    """Returns the name of the link, which is also the name of its stream of chance."""
    return f"{sender} -> {receiver}"


def _told(frame: bytes) -> str:
    """Tells a frame to a person."""
    try:
        command = FrameDecoder().feed(frame)[0]
    except (ProtocolError, IndexError):
        return f"a frame of {len(frame)} bytes"
    if command.is_response:
        return f"the answer to request {command.opaque}, code {command.code}, {len(frame)} bytes,"
    name = RequestCode(command.code).name if command.code in _KNOWN_CODES else str(command.code)
    return f"request {command.opaque}, {name}, {len(frame)} bytes,"
