"""What happens to single writes on a link: frames lost, cut or watched, and bytes that arrive in pieces.

Frames are RocketMQ's: 4 bytes of length, and so many bytes. They are only looked for while a fault needs them. Each write begins
with a frame's first byte, as those of `rocketmq_broker.remoting` do.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.errors import ProtocolError
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.testing.simulation.network.notes import Fired, NetworkNote, nothing
from rocketmq_broker.testing.simulation.network.ports import NetworkHistory
from rocketmq_broker.testing.tapped import frames

SMALL_PIECE_BYTES: Final = 7
_SMALL_PIECES: Final = 48
_LARGE_PIECES: Final = 16
_KNOWN_CODES: Final = frozenset(RequestCode)


@dataclass(slots=True)
class FrameWatch:
    """A watch for one of the next frames that a process sends, to whomever."""

    left: int
    """Frames to come, the awaited one included."""
    act: Callable[[], object]
    is_after: bool
    """Whether the frame leaves before `act` is called."""


class WriteFaults:
    """The faults of the writes on one link."""

    def __init__(self, link: str, chance: random.Random, history: NetworkHistory, watches: list[FrameWatch]) -> None:
        """`link` is its name; `watches` are those of the sending process: all its links share them."""
        self._link = link
        self._chance = chance
        self._history = history
        self._watches = watches
        self._lost = 0
        self._lost_rate = 0.0
        self._loss_fired: Fired = nothing
        self._cut_in = 0
        self._cut_fired: Fired = nothing
        self._most_bytes = 0
        self._pieces_fired: Fired = nothing
        self.are_any = False
        """Whether `passed` must see each write."""
        self.changed()

    def lose(self, count: int, fired: Fired) -> None:
        """Loses so many frames more."""
        self._lost += count
        self._loss_fired = fired
        self.changed()

    def lose_by_chance(self, rate: float, fired: Fired) -> None:
        """Loses each frame with that probability. Raises ValueError for a rate that is none."""
        if not 0 <= rate <= 1:
            raise ValueError(f"{self._link}: {rate} is no probability")
        self._lost_rate = rate
        self._loss_fired = fired
        self.changed()

    def cut(self, nth: int, fired: Fired) -> None:
        """Breaks the connection in the middle of the `nth` of the next frames."""
        self._cut_in = nth
        self._cut_fired = fired
        self.changed()

    def divide(self, most_bytes: int, fired: Fired = nothing) -> None:
        """Lets each write arrive in pieces of so many bytes at most; whole again for 0."""
        self._most_bytes = most_bytes
        self._pieces_fired = fired
        self.changed()

    def changed(self) -> None:
        """Notes that faults or watches have come or gone."""
        self.are_any = self._are_about_frames() or self._most_bytes > 0

    def passed(self, data: bytes) -> Iterator[bytes | None]:
        """Yields what arrives of one write, piece by piece; None last if the connection breaks."""
        if not self._are_about_frames():
            yield from self._pieces(data)
            return
        kept: list[bytes] = []
        for frame in frames(data):
            for act in self._due(is_after=False):
                yield from self._pieces(b"".join(kept))
                kept.clear()
                act()
            if self._is_lost():
                self._note(NetworkNote.FRAME_LOST, f"{_told(frame)} is lost")
                continue
            if self._is_cut():
                arriving = self._chance.randrange(1, len(frame)) if len(frame) > 1 else 0
                self._note(NetworkNote.HALF_WRITTEN, f"{_told(frame)} is cut after {arriving} bytes: the connection breaks")
                yield from self._pieces(b"".join(kept) + frame[:arriving])
                self.changed()
                yield None
                return
            kept.append(frame)
            for act in self._due(is_after=True):
                yield from self._pieces(b"".join(kept))
                kept.clear()
                act()
        self.changed()
        yield from self._pieces(b"".join(kept))

    def _are_about_frames(self) -> bool:
        return bool(self._lost or self._lost_rate or self._cut_in or self._watches)

    def _is_lost(self) -> bool:
        if self._lost:
            self._lost -= 1
        elif not self._lost_rate or self._chance.random() >= self._lost_rate:
            return False
        fired, self._loss_fired = self._loss_fired, nothing
        fired()
        return True

    def _is_cut(self) -> bool:
        if not self._cut_in:
            return False
        self._cut_in -= 1
        if self._cut_in:
            return False
        fired, self._cut_fired = self._cut_fired, nothing
        fired()
        return True

    def _due(self, *, is_after: bool) -> Iterator[Callable[[], object]]:
        """Yields what the watches do before, or after, the next frame."""
        for watch in [watch for watch in self._watches if watch.is_after == is_after]:
            watch.left -= 1
            if not watch.left:
                self._watches.remove(watch)
                yield watch.act

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        """Yields pieces of a few bytes, and larger ones of a long write's rest: it would else take thousands."""
        most_bytes = self._most_bytes
        if not most_bytes:
            if data:
                yield data
            return
        fired, self._pieces_fired = self._pieces_fired, nothing
        fired()
        begin = count = 0
        while begin < len(data):
            if count == _SMALL_PIECES:
                most_bytes = max(most_bytes, 2 * (len(data) - begin) // _LARGE_PIECES)
            end = begin + self._chance.randint(1, most_bytes)
            yield data[begin:end]
            begin, count = end, count + 1

    def _note(self, kind: NetworkNote, text: str) -> None:
        self._history.note(self._link, kind, text)


def _told(frame: bytes) -> str:
    """Tells a frame to a person."""
    try:
        command = FrameDecoder().feed(frame)[0]
    except (ProtocolError, IndexError):
        return f"a frame of {len(frame)} bytes"
    if command.is_response:
        return f"the answer to request {command.opaque} (code {command.code}, {len(frame)} bytes)"
    name = RequestCode(command.code).name if command.code in _KNOWN_CODES else f"code {command.code}"
    return f"request {command.opaque} ({name}, {len(frame)} bytes)"
