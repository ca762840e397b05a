"""Two worlds side by side: what happens in both, and what in one of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

from rocketmq_broker.testing.simulation.page.told import ToldHappening


@dataclass(frozen=True, slots=True)
class Pair:
    """What happens at one place of two stories. One of both is None if a happening has no partner."""

    here: ToldHappening | None
    beside: ToldHappening | None
    is_same: bool
    """True if both tell of one event, though perhaps at another time."""


def pairs_of(here: Sequence[ToldHappening], beside: Sequence[ToldHappening]) -> list[Pair]:
    """Returns both stories in one order, with partners in one pair. Times and keys alone make no difference."""
    return list(_pairs(here, beside))


def _pairs(here: Sequence[ToldHappening], beside: Sequence[ToldHappening]) -> Iterator[Pair]:
    matcher = SequenceMatcher(None, [_event(one) for one in here], [_event(one) for one in beside], autojunk=False)
    for operation, begin, end, beside_begin, beside_end in matcher.get_opcodes():
        is_same = operation == "equal"
        for one, other in zip_longest(here[begin:end], beside[beside_begin:beside_end]):
            yield Pair(one, other, is_same)


def _event(happening: ToldHappening) -> tuple[str, str, str, str]:
    """Returns what two worlds have in common at an event, though their ids differ."""
    text = happening.text
    for key in sorted(happening.keys, key=len, reverse=True):
        if key:
            text = text.replace(key, "#")
    return happening.process, happening.to or "", happening.kind, text
