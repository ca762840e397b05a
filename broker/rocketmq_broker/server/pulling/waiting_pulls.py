"""The pulls that wait at one queue, arranged so that a new message finds its pulls without a search of the others."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Generic, Protocol, TypeVar

from rocketmq_broker.server.clients.message_filters import MessageFilter


class Waiting(Protocol):
    """A waiting pull."""

    offset: int
    message_filter: MessageFilter


P = TypeVar("P", bound=Waiting)


class WaitingPulls(Generic[P]):
    """Pulls by the tags codes that they want. Each message wakes the pulls for all messages or by an expression."""

    def __init__(self, looked_at_until: int) -> None:
        self.looked_at_until = looked_at_until
        """Queue offset. Whoever waits by tag wants no message before it: they were looked at when they arrived."""
        self._any: dict[P, None] = {}
        self._by_code: dict[int, dict[P, None]] = {}

    def __len__(self) -> int:
        return len(set(self._all()))

    def __bool__(self) -> bool:
        return bool(self._any or self._by_code)

    @property
    def is_by_tag(self) -> bool:
        """True if pulls wait for messages with certain tags."""
        return bool(self._by_code)

    def add(self, pull: P) -> None:
        """Adds a pull."""
        if pull.message_filter.tags_codes is None:
            self._any[pull] = None
        else:
            for code in pull.message_filter.tags_codes:
                self._by_code.setdefault(code, {})[pull] = None

    def remove(self, pull: P) -> None:
        """Removes a pull, and moves its offset behind the messages already looked at for it."""
        if pull.message_filter.tags_codes is None:
            del self._any[pull]
            return
        for code in pull.message_filter.tags_codes:
            del self._by_code[code][pull]
            if not self._by_code[code]:
                del self._by_code[code]
        pull.offset = max(pull.offset, self.looked_at_until)

    def wanted(self, max_offset: int, tags_codes: Collection[int] | None) -> list[P]:
        """Returns the pulls that want a message with one of these tags codes; all pulls if the codes are unknown."""
        if tags_codes is None:
            found = list(dict.fromkeys(self._all()))
        else:
            by_tag = (pull for code in tags_codes for pull in self._by_code.get(code, ()))
            found = [*self._any, *dict.fromkeys(by_tag)]
        return [pull for pull in found if pull.offset < max_offset]

    def _all(self) -> Iterator[P]:
        yield from self._any
        for pulls in self._by_code.values():
            yield from pulls
