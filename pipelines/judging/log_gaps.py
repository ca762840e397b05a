"""Finds gaps in the commit log, and the orders whose message may have been in a gap.

The reconciliation looks for each order's message in the log. If a part of the log is missing or unreadable, the
message may have been in that part. An order that was placed before the first record after the gap, and that has no
message in the log, therefore cannot be judged.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pipelines.judging.classes import Cause, Finding
from pipelines.judging.cut_off import CutOff

_NAME: Final = re.compile(r"from (\d+) to (\d+), whole again (?:at (\d+) ms|later)")
_LOST_END: Final = re.compile(r".+, queue \d+: [\d,]+ consumed, [\d,]+ in the log")
_SAYS_NOTHING: Final = {
    Finding.ORDER_WITHOUT_MESSAGE: tuple(Cause),
    Finding.MISSING_CREDIT: (Cause.NO_MESSAGE, Cause.NO_TRANSACTION, Cause.ROLLED_BACK, Cause.UNKNOWN),
    Finding.MISSING_REVERSAL: (Cause.NO_MESSAGE,),
    Finding.REVERSAL_MISMATCH: (Cause.NO_MESSAGE,),
    Finding.MESSAGE_MISMATCH: (Cause.NO_HALF,),
    Finding.IN_FLIGHT: (Cause.PENDING,),
    Finding.OVERDUE: (Cause.PENDING,),
}
"""Maps classes to causes. A finding with such a class and cause may result from a record that is missing from the log."""
_BESIDE_DELIVERY: Final = (Finding.MISSING_REVERSAL, Finding.REVERSAL_MISMATCH, Finding.MESSAGE_MISMATCH)
"""The classes that may result from a missing record even if the order's delivered message was read."""
_WRONG_WITHOUT_LOG: Final = (
    Finding.CREDIT_WITHOUT_ORDER,
    Finding.TRANSACTION_WITHOUT_ORDER,
    Finding.MESSAGE_WITHOUT_ORDER,
)
"""The classes of contradictions within the databases. A message without an order may exist only in the inbox.

Findings of these classes are always reported, but their cause may result from a missing record.
"""
_SAID_BY_SILENCE: Final = (Cause.NO_MESSAGE, Cause.ROLLED_BACK)


@dataclass(frozen=True, slots=True)
class LogGap:
    """A missing or unreadable part of a commit log."""

    begins: int
    ends: int
    whole_again_ms: int | None
    """The store time in milliseconds of the first record after the gap; None if there is none."""
    is_missing: bool
    """True if the bytes are missing, False if they are damaged."""
    lost: str = ""
    """The description of a queue whose end is missing from the log; empty for a gap between two offsets."""

    @property
    def text(self) -> str:
        """The description of the gap."""
        if self.lost:
            return f"the log has lost the end of {self.lost}"
        return f"the log {'has a gap' if self.is_missing else 'is damaged'} from {self.begins:,} to {self.ends:,}"


def name_of_stretch() -> str:
    """Returns the SQL of the name of a `gap` or `damage` record, which belongs to no order."""
    again = "COALESCE(concat('at ', stored_at_ms, ' ms'), 'later')"
    return f"concat('from ', commit_log_offset, ' to ', commit_log_offset + size, ', whole again ', {again})"


def gaps_of(rows: Iterable[Mapping[str, Any]]) -> list[LogGap]:
    """Returns the gaps in rows of `totals.summed`, sorted by offset."""
    found = []
    for row in rows:
        if row["order_id"] is None and row["finding"] in (Finding.LOG_GAP, Finding.DAMAGED_MESSAGE):
            name = _NAME.fullmatch(row["transaction_id"] or "")
            if _LOST_END.fullmatch(row["transaction_id"] or ""):
                found.append(LogGap(0, 0, None, is_missing=True, lost=row["transaction_id"]))
            if name:
                again = None if name[3] is None else int(name[3])
                found.append(LogGap(int(name[1]), int(name[2]), again, row["finding"] == Finding.LOG_GAP))
    return sorted(found, key=lambda gap: (gap.begins, gap.ends))


def with_unjudged(rows: Sequence[dict[str, Any]], cut_off: CutOff) -> list[dict[str, Any]]:
    """Marks as `not_judged` the orders whose message may have been in a gap."""
    gaps = gaps_of(rows)
    if not gaps:
        return list(rows)
    again = [gap.whole_again_ms for gap in gaps]
    # The grace period covers the difference between the clocks of order service and broker.
    until_ms = cut_off.as_of_ms if None in again else max(at for at in again if at is not None) + cut_off.grace_seconds * 1000
    return [_without_silence(row, until_ms) for row in rows]


def gap_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns a line for each gap; the last one has the number of transactions that cannot be judged. Empty without gaps."""
    gaps = gaps_of(rows)
    if not gaps:
        return []
    unjudged = sum(row["count"] for row in rows if row["finding"] == Finding.NOT_JUDGED)
    lines = [gap.text for gap in gaps]
    what = "1 transaction" if unjudged == 1 else f"{unjudged:,} transactions"
    return [*lines[:-1], f"{lines[-1]}: {what} cannot be judged"]


def _without_silence(row: dict[str, Any], until_ms: int) -> dict[str, Any]:
    """Returns the row as `not_judged`, or with an unknown cause, if a record missing in a gap may explain the finding.

    Orders that began after `until_ms` are returned unchanged.
    """
    finding = Finding(row["finding"])
    times = (row[name] for name in ("ordered_at_ms", "half_at_ms", "credited_at_ms"))
    began_ms = next((int(at) for at in times if at is not None), until_ms)
    was_read = row["delivered_at_ms"] is not None and finding not in _BESIDE_DELIVERY
    if row["order_id"] is None or was_read or began_ms > until_ms:
        return row
    if row["cause"] in _SAYS_NOTHING.get(finding, ()):
        return row | {"finding": Finding.NOT_JUDGED.value, "cause": None}
    if finding in _WRONG_WITHOUT_LOG and row["cause"] in _SAID_BY_SILENCE:
        return row | {"cause": Cause.UNKNOWN.value}
    return row
