"""Compares two worlds (simulated runs), to find the events that occur in both and those that occur in only one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

from rocketmq_broker.testing.simulation.page.world_report import ReportedEvent


@dataclass(frozen=True, slots=True)
class Pair:
    """The events at one position of two histories. An event is None if the other history has no equal event."""

    here: ReportedEvent | None
    beside: ReportedEvent | None
    is_same: bool
    """Whether both events of the pair are the same, apart from times and ids."""


def pairs_of(here: Sequence[ReportedEvent], beside: Sequence[ReportedEvent]) -> list[Pair]:
    """Aligns two histories, so that equal events form a pair. Ignores times and keys."""
    return list(_pairs(here, beside))


def _pairs(here: Sequence[ReportedEvent], beside: Sequence[ReportedEvent]) -> Iterator[Pair]:
    matcher = SequenceMatcher(None, [_event(one) for one in here], [_event(one) for one in beside], autojunk=False)
    for operation, begin, end, beside_begin, beside_end in matcher.get_opcodes():
        is_same = operation == "equal"
        for one, other in zip_longest(here[begin:end], beside[beside_begin:beside_end]):
            yield Pair(one, other, is_same)


def _event(happening: ReportedEvent) -> tuple[str, str, str, str]:
    """Returns the parts of an event to compare, with ids replaced, because these differ between worlds."""
    text = happening.text
    for key in sorted(happening.keys, key=len, reverse=True):
        if key:
            text = text.replace(key, "#")
    return happening.process, happening.to or "", happening.kind, text
