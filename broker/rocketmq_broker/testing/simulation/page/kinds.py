"""Defines the labels and CSS classes of the kinds of events on a page."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rocketmq_broker.testing.simulation.page.world_report import ReportedKind

KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        ReportedKind.FAULT: "fault",
        ReportedKind.DEATH: "death of a process",
        ReportedKind.VIOLATION: "broken promise",
        ReportedKind.START: "start of a process",
        ReportedKind.ACTION: "a customer acts",
        ReportedKind.REQUEST: "request",
        ReportedKind.ANSWER: "answer",
        ReportedKind.SEND: "message sent",
        ReportedKind.HALF: "half message",
        ReportedKind.COMMIT: "COMMIT",
        ReportedKind.ROLLBACK: "ROLLBACK",
        ReportedKind.CHECK: "check-back",
        ReportedKind.DELIVERY: "delivery",
        ReportedKind.ROW: "row of a database",
        ReportedKind.FLUSH: "write to a disk",
    }
)
"""Maps the kinds of events to their labels, in the order of the legend."""
_TAGS: Final = MappingProxyType(
    {ReportedKind.FAULT: "FAULT", ReportedKind.DEATH: "DEAD", ReportedKind.VIOLATION: "BROKEN PROMISE"}
)


def kind_class(kind: str) -> str:
    """Returns the CSS class of a kind. Unknown kinds share one class."""
    return f"k-{kind}" if kind in KINDS else "k-other"


def tag(kind: str) -> str:
    """Returns the HTML of the tag before a fault, death or broken promise, or an empty string for other kinds."""
    word = _TAGS.get(ReportedKind(kind)) if kind in KINDS else None
    return f'<b class="tag">{word}</b> ' if word else ""
