"""Groups the findings about messages in the credit service's inbox by the reason why the messages are still there."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pipelines.judging.classes import Cause

_OF_THE_INBOX: Final = (Cause.PARKED, Cause.WAITING)


@dataclass(frozen=True, slots=True)
class InboxReason:
    """The number of findings with a cause and a reason. `last_error` is empty if the messages have not failed."""

    cause: Cause
    last_error: str
    count: int
    oldest_received_at_ms: int | None
    """The time at which the oldest message was stored, in milliseconds since the epoch."""


def inbox_reasons(rows: Iterable[Mapping[str, Any]]) -> list[InboxReason]:
    """Groups rows of `totals.summed` by reason. Returns the reasons of parked messages first, then the most frequent ones."""
    groups: dict[tuple[Cause, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["cause"] in _OF_THE_INBOX:
            groups[Cause(row["cause"]), row["last_error"] or ""].append(row)
    reasons = [InboxReason(*key, sum(row["count"] for row in of_it), _oldest_ms(of_it)) for key, of_it in groups.items()]
    return sorted(reasons, key=lambda reason: (_OF_THE_INBOX.index(reason.cause), -reason.count, reason.last_error))


def _oldest_ms(rows: Iterable[Mapping[str, Any]]) -> int | None:
    return min((int(row["received_at_ms"]) for row in rows if row["received_at_ms"] is not None), default=None)
