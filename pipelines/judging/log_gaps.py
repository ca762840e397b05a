"""Gaps of the commit log, and the orders whose message may have been in one.

The reconciliation asks the log for each order's message. If a stretch of the log is missing, or is unreadable and names no order,
the message may have been in it. So an order placed before the log was whole again, without a message in the log, counts as
neither lost nor on its way: it cannot be judged.
"""

from __future__ import annotations

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
"""The findings about an order because the log lacks a record of it."""
_BESIDE_DELIVERY: Final = (Finding.MISSING_REVERSAL, Finding.REVERSAL_MISMATCH, Finding.MESSAGE_MISMATCH)
"""The findings because the log lacks another record than the order's delivered message."""
_WRONG_WITHOUT_LOG: Final = (Finding.CREDIT_WITHOUT_ORDER, Finding.TRANSACTION_WITHOUT_ORDER)
"""The contradictions within the databases. They stay; but their cause may rest on a missing record of the log."""
_SAID_BY_SILENCE: Final = (Cause.NO_MESSAGE, Cause.ROLLED_BACK)


@dataclass(frozen=True, slots=True)
class LogGap:
    """A missing or unreadable stretch of a commit log."""

    begins: int
    ends: int
    whole_again_ms: int | None
    """The store time of the first record behind it; None without one."""
    is_missing: bool
    """Whether the bytes are missing; otherwise they are damaged."""
    lost: str = ""
    """The queue whose end is missing with its bytes, in words; "" for a stretch between known offsets."""

    @property
    def told(self) -> str:
        """What is missing or damaged, in words."""
        if self.lost:
            return f"the log has lost the end of {self.lost}"
        return f"the log {'has a gap' if self.is_missing else 'is damaged'} from {self.begins:,} to {self.ends:,}"


def name_of_stretch() -> str:
    """Returns the SQL of the name of a record of kind `gap` or `damage` that names no order."""
    again = "COALESCE(concat('at ', stored_at_ms, ' ms'), 'later')"
    return f"concat('from ', commit_log_offset, ' to ', commit_log_offset + size, ', whole again ', {again})"


def gaps_of(rows: Iterable[Mapping[str, Any]]) -> list[LogGap]:
    """Returns the gaps in rows of `totals.summed`, in the order of their offsets."""
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
    # Order service and broker have separate clocks: the grace period covers the difference.
    until_ms = cut_off.as_of_ms if None in again else max(at for at in again if at is not None) + cut_off.grace_seconds * 1000
    return [_without_silence(row, until_ms) for row in rows]


def gaps_told(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns one line for each gap, and a last one with the number of transactions that cannot be judged. None without gaps."""
    gaps = gaps_of(rows)
    if not gaps:
        return []
    unjudged = sum(row["count"] for row in rows if row["finding"] == Finding.NOT_JUDGED)
    told = [gap.told for gap in gaps]
    what = "1 transaction" if unjudged == 1 else f"{unjudged:,} transactions"
    return [*told[:-1], f"{told[-1]}: {what} cannot be judged"]


def _without_silence(row: dict[str, Any], until_ms: int) -> dict[str, Any]:
    """Returns the row without a finding that rests only on a record's absence, if the record may have been in a gap."""
    finding = Finding(row["finding"])
    told = (row[name] for name in ("ordered_at_ms", "half_at_ms", "credited_at_ms"))
    began_ms = next((int(at) for at in told if at is not None), until_ms)
    was_read = row["delivered_at_ms"] is not None and finding not in _BESIDE_DELIVERY
    if row["order_id"] is None or was_read or began_ms > until_ms:
        return row
    if row["cause"] in _SAYS_NOTHING.get(finding, ()):
        return row | {"finding": Finding.NOT_JUDGED.value, "cause": None}
    if finding in _WRONG_WITHOUT_LOG and row["cause"] in _SAID_BY_SILENCE:
        return row | {"cause": Cause.UNKNOWN.value}
    return row
