"""Converts the events of a history for a page. A link becomes an arrow, and all kinds of faults become `fault`."""

from collections.abc import Collection, Iterable
from typing import Final

from rocketmq_broker.testing.simulation.history import RecordedEvent
from rocketmq_broker.testing.simulation.page.world_report import ReportedEvent, ReportedKind

_LINK: Final = " -> "
"""The separator of the two processes in the name of a link."""
_WORLD: Final = "world"
"""The process name of the world's own events."""


def reported_events(happenings: Iterable[RecordedEvent], fault_kinds: Collection[str] = ()) -> tuple[ReportedEvent, ...]:
    """Returns the events for a page. Events of `fault_kinds` get the kind `fault`."""
    return tuple(_reported(happening, fault_kinds) for happening in happenings)


def _reported(happening: RecordedEvent, fault_kinds: Collection[str]) -> ReportedEvent:
    process, separator, receiver = happening.process.partition(_LINK)
    return ReportedEvent(
        happening.at_ns,
        "" if process == _WORLD else process,
        ReportedKind.FAULT if happening.kind in fault_kinds else happening.kind,
        happening.text,
        happening.keys,
        receiver if separator else happening.to,
    )
