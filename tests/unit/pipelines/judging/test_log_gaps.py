"""Tests which findings about missing records remain when the log has a gap."""

from typing import Any

import pytest

from pipelines.judging.classes import Cause, Finding
from pipelines.judging.cut_off import CutOff
from pipelines.judging.log_gaps import with_unjudged

WHOLE_AGAIN_MS = 5_000_000
GRACE_SECONDS = 60
CUT_OFF = CutOff(9_000_000, GRACE_SECONDS, 3600)
TOLD = ("transaction_id", "ordered_at_ms", "half_at_ms", "delivered_at_ms", "credited_at_ms")
NOT_JUDGED = (Finding.NOT_JUDGED, None)


def row(finding: Finding, cause: Cause | None, order_id: str | None = "o", **told: Any) -> dict[str, Any]:
    return dict.fromkeys(TOLD) | {"finding": finding, "cause": cause, "order_id": order_id, **told}


GAP = row(Finding.LOG_GAP, None, None, transaction_id=f"from 10 to 20, whole again at {WHOLE_AGAIN_MS} ms")
RESTS_ON_SILENCE = [
    (Finding.ORDER_WITHOUT_MESSAGE, Cause.NO_MESSAGE),
    (Finding.ORDER_WITHOUT_MESSAGE, Cause.ROLLED_BACK),
    (Finding.ORDER_WITHOUT_MESSAGE, Cause.PENDING),
    (Finding.ORDER_WITHOUT_MESSAGE, Cause.DISCARDED),
    (Finding.MISSING_CREDIT, Cause.NO_MESSAGE),
    (Finding.MISSING_CREDIT, Cause.ROLLED_BACK),
    (Finding.IN_FLIGHT, Cause.PENDING),
    (Finding.OVERDUE, Cause.PENDING),
]
OF_CANCELLATIONS = [(Finding.MISSING_REVERSAL, Cause.NO_MESSAGE), (Finding.REVERSAL_MISMATCH, Cause.NO_MESSAGE)]
STAYS = [
    (Finding.MISSING_CREDIT, Cause.DEAD_LETTER),
    (Finding.MISSING_CREDIT, Cause.DISCARDED),
    (Finding.REVERSAL_MISMATCH, Cause.UNASKED),
    (Finding.AMOUNT_MISMATCH, Cause.LEDGER),
    (Finding.CREDIT_WITHOUT_ORDER, Cause.ORDER_LOST),
]


def judged(told: dict[str, Any]) -> tuple[str, str | None]:
    _, found = with_unjudged([GAP, told], CUT_OFF)
    return found["finding"], found["cause"]


@pytest.mark.parametrize(("finding", "cause"), [*RESTS_ON_SILENCE, *OF_CANCELLATIONS])
def test_what_rests_on_a_record_that_may_lie_in_the_gap_is_not_judged(finding: Finding, cause: Cause) -> None:
    last = WHOLE_AGAIN_MS + GRACE_SECONDS * 1000
    assert judged(row(finding, cause, ordered_at_ms=last)) == NOT_JUDGED
    assert judged(row(finding, cause, ordered_at_ms=last + 1)) == (finding, cause)
    was_read = judged(row(finding, cause, ordered_at_ms=1, delivered_at_ms=1))
    assert was_read == (NOT_JUDGED if (finding, cause) in OF_CANCELLATIONS else (finding, cause))


@pytest.mark.parametrize(("finding", "cause"), STAYS)
def test_what_was_read_and_contradicts_stays_found(finding: Finding, cause: Cause) -> None:
    assert judged(row(finding, cause, ordered_at_ms=1)) == (finding, cause)


@pytest.mark.parametrize("finding", [Finding.CREDIT_WITHOUT_ORDER, Finding.TRANSACTION_WITHOUT_ORDER])
@pytest.mark.parametrize("cause", [Cause.NO_MESSAGE, Cause.ROLLED_BACK])
def test_a_contradiction_of_the_databases_loses_only_the_cause_that_silence_named(finding: Finding, cause: Cause) -> None:
    assert judged(row(finding, cause, credited_at_ms=1)) == (finding, Cause.UNKNOWN)
    assert judged(row(finding, cause, credited_at_ms=8_000_000)) == (finding, cause)
