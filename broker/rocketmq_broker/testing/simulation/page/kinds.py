"""The kinds of happenings on a page: their names for people, and their colours' classes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rocketmq_broker.testing.simulation.page.told import ToldKind

KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        ToldKind.FAULT: "fault",
        ToldKind.DEATH: "death of a process",
        ToldKind.VIOLATION: "broken promise",
        ToldKind.START: "start of a process",
        ToldKind.ACTION: "a customer acts",
        ToldKind.REQUEST: "request",
        ToldKind.ANSWER: "answer",
        ToldKind.SEND: "message sent",
        ToldKind.HALF: "half message",
        ToldKind.COMMIT: "COMMIT",
        ToldKind.ROLLBACK: "ROLLBACK",
        ToldKind.CHECK: "check-back",
        ToldKind.DELIVERY: "delivery",
        ToldKind.ROW: "row of a database",
        ToldKind.FLUSH: "write to a disk",
    }
)
"""In the order of the legend."""
_TAGS: Final = MappingProxyType({ToldKind.FAULT: "FAULT", ToldKind.DEATH: "DEAD", ToldKind.VIOLATION: "BROKEN PROMISE"})


def kind_class(kind: str) -> str:
    """Returns the class of a kind's colour. All kinds without a name share one."""
    return f"k-{kind}" if kind in KINDS else "k-other"


def tag(kind: str) -> str:
    """Returns as HTML the word in front of what went wrong; empty for what is usual."""
    word = _TAGS.get(ToldKind(kind)) if kind in KINDS else None
    return f'<b class="tag">{word}</b> ' if word else ""
