"""Converts the events of a history for a page. A link becomes an arrow."""

from collections.abc import Iterable
from typing import Final

from rocketmq_broker.testing.simulation.history import RecordedEvent
from rocketmq_broker.testing.simulation.page.world_report import ReportedEvent

_LINK: Final = " -> "
"""The separator of the two processes in the name of a link."""
_WORLD: Final = "world"
"""The process name of the world's own events."""


def reported_events(happenings: Iterable[RecordedEvent]) -> tuple[ReportedEvent, ...]:
    """Returns the events for a page."""
    return tuple(map(_reported, happenings))


def _reported(happening: RecordedEvent) -> ReportedEvent:
    process, separator, receiver = happening.process.partition(_LINK)
    return ReportedEvent(
        happening.at_ns,
        "" if process == _WORLD else process,
        happening.kind,
        happening.text,
        happening.keys,
        receiver if separator else happening.to,
    )
