"""Applies faults to the writes on a link. Frames can be dropped, cut or watched, and data can arrive in pieces.

Frames are those of RocketMQ: a length of 4 bytes, followed by that many bytes. They are parsed only while a fault
needs them. Each write must begin with a frame, as the writes of `rocketmq_broker.remoting` do.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.errors import ProtocolError
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.testing.simulation.history import History
from rocketmq_broker.testing.simulation.network.notes import Fired, NetworkNote, nothing
from rocketmq_broker.testing.tapped import frames

_SMALL_PIECE_BYTES: Final = 7
_SMALL_PIECES: Final = 48
_LARGE_PIECES: Final = 16
_KNOWN_CODES: Final = frozenset(RequestCode)


@dataclass(slots=True)
class FrameWatch:
    """A watch for one of the next frames that a process sends to any receiver."""

    left: int
    """The number of frames until the watched frame; 1 for the next frame."""
    act: Callable[[], object]
    is_after: bool
    """True if `act` is called after the frame is sent, False if before."""


class WriteFaults:
    """The faults of writes on one link."""

    def __init__(self, link: str, chance: random.Random, history: History, watches: list[FrameWatch]) -> None:
        """Creates an empty set of faults of the link named `link`. All links of the sender share `watches`, its frame watches."""
        self._link = link
        self._chance = chance
        self._history = history
        self._watches = watches
        self._lost = 0
        self._loss_fired: Fired = nothing
        self._cut_in = 0
        self._cut_fired: Fired = nothing
        self._is_divided = False
        self._pieces_fired: Fired = nothing
        self.are_any = False
        """Whether any fault or watch is active, so that writes must go through `passed`."""
        self.changed()

    def lose(self, count: int, fired: Fired) -> None:
        """Drops `count` more frames."""
        self._lost += count
        self._loss_fired = fired
        self.changed()

    def cut(self, nth: int, fired: Fired) -> None:
        """Breaks the connection in the middle of the `nth` frame from now."""
        self._cut_in = nth
        self._cut_fired = fired
        self.changed()

    def divide(self, is_divided: bool, fired: Fired) -> None:
        """Sets whether each write arrives in pieces of a few bytes."""
        self._is_divided = is_divided
        self._pieces_fired = fired
        self.changed()

    def changed(self) -> None:
        """Updates `are_any` after a change of faults or watches."""
        self.are_any = self._are_about_frames() or self._is_divided

    def passed(self, data: bytes) -> Iterator[bytes | None]:
        """Yields the pieces of a write that arrive, followed by None if the connection breaks."""
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
                self._note(NetworkNote.FRAME_LOST, f"{_described(frame)} is lost")
                continue
            if self._is_cut():
                arriving = self._chance.randrange(1, len(frame)) if len(frame) > 1 else 0
                self._note(NetworkNote.HALF_WRITTEN, f"{_described(frame)} is cut after {arriving} bytes: the connection breaks")
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
        return bool(self._lost or self._cut_in or self._watches)

    def _is_lost(self) -> bool:
        if not self._lost:
            return False
        self._lost -= 1
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
        """Yields the actions of watches that are due before, or after, the next frame."""
        for watch in [watch for watch in self._watches if watch.is_after == is_after]:
            watch.left -= 1
            if not watch.left:
                self._watches.remove(watch)
                yield watch.act

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        """Splits data into pieces of a few bytes. The rest of a long write is split into larger pieces, to limit their number."""
        if not self._is_divided:
            if data:
                yield data
            return
        max_bytes = _SMALL_PIECE_BYTES
        fired, self._pieces_fired = self._pieces_fired, nothing
        fired()
        begin = count = 0
        while begin < len(data):
            if count == _SMALL_PIECES:
                max_bytes = max(max_bytes, 2 * (len(data) - begin) // _LARGE_PIECES)
            end = begin + self._chance.randint(1, max_bytes)
            yield data[begin:end]
            begin, count = end, count + 1

    def _note(self, kind: NetworkNote, text: str) -> None:
        self._history.note(self._link, kind, text)


def _described(frame: bytes) -> str:
    """Returns a readable description of a frame."""
    try:
        command = FrameDecoder().feed(frame)[0]
    except (ProtocolError, IndexError):
        return f"a frame of {len(frame)} bytes"
    if command.is_response:
        return f"the answer to request {command.opaque} (code {command.code}, {len(frame)} bytes)"
    name = RequestCode(command.code).name if command.code in _KNOWN_CODES else f"code {command.code}"
    return f"request {command.opaque} ({name}, {len(frame)} bytes)"
