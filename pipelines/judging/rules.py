"""The rules: named conditions on a history, and the class and cause that follow from them.

All is SQL that Spark and SQLite understand alike. It is applied in three steps, each to the columns of those before it:
facts, then stage and class, then cause and money at stake. A history also has the column `markers`: how many ROLLED_BACK
markers name its transaction.
"""

from __future__ import annotations

from typing import Final

from pipelines.judging.classes import Cause, Finding
from pipelines.judging.cut_off import CutOff

_NEVER: Final = "-1"


def facts(cut_off: CutOff, log_begins_ms: int | None) -> dict[str, str]:
    """Claims about a history. `log_begins_ms` is when the commit logs begin that were read; None if none was read."""
    young = f"> {cut_off.judged_until_ms}"
    is_logged = "FALSE" if log_begins_ms is None else f"ordered_at_ms >= {log_begins_ms}"
    claims = {
        "has_order": "order_rows > 0",
        "has_credit": "credit_rows > 0",
        "is_reversed": "reversal_rows > 0",
        "is_cancelled": "cancelled_rows > 0",
        "is_awaiting": "order_state = 'AWAITING_PAYMENT' AND committed_rows = 0 AND credit_rows = 0 AND deliveries = 0",
        "is_cancelling": (
            f"cancelled_at_ms {young} OR unconsumed_cancellations > 0 OR (cancel_halves > 0 AND cancel_deliveries = 0 "
            f"AND last_cancel_half_at_ms > COALESCE(last_decided_cancel_half_at_ms, {_NEVER}))"
        ),
        "is_delivered": "deliveries > 0",
        "is_marked": "markers > 0 OR rolled_back_rows > 0",
        "is_old": f"NOT COALESCE(ordered_at_ms {young}, FALSE)",
        "is_logged": is_logged,
        "is_pending": (
            f"halves > 0 AND deliveries = 0 AND last_half_at_ms > COALESCE(last_decided_half_at_ms, {_NEVER}) "
            f"AND last_half_at_ms > COALESCE(discarded_at_ms, {_NEVER})"
        ),
        "is_discarded": f"discards > 0 AND deliveries = 0 AND discarded_at_ms >= COALESCE(last_half_at_ms, {_NEVER})",
        "is_dead_letter": (
            f"dead_letters > 0 AND dead_at_ms >= COALESCE(delayed_at_ms, {_NEVER}) "
            f"AND dead_at_ms >= COALESCE(retried_at_ms, {_NEVER})"
        ),
        "is_redelivering": (
            f"(delayed_at_ms > COALESCE(retried_at_ms, {_NEVER}) AND delayed_at_ms > COALESCE(dead_at_ms, {_NEVER})) "
            f"OR (unconsumed_retries > 0 AND retried_at_ms > COALESCE(dead_at_ms, {_NEVER}))"
        ),
        "is_fresh": (
            f"ordered_at_ms {young} OR last_delivered_at_ms {young} OR retried_at_ms {young} "
            f"OR (order_rows = 0 AND (credited_at_ms {young} OR decided_at_ms {young}))"
        ),
        "was_doubled": "deliveries > 1 AND (born_at_ms = last_born_at_ms OR (halves > 0 AND deliveries > halves))",
        "is_long_on_its_way": (
            f"COALESCE(cancelled_at_ms, ordered_at_ms, half_at_ms, delivered_at_ms) <= {cut_off.overdue_until_ms}"
        ),
    }
    return {name: f"COALESCE({claim}, FALSE)" for name, claim in claims.items()}


_MOVES: Final = "(is_pending OR is_redelivering OR (unconsumed > 0 AND NOT is_dead_letter))"
_LACKS_CREDIT_YET: Final = f"has_order AND NOT has_credit AND {_MOVES}"
_LACKS_ORDER: Final = "NOT has_order AND NOT has_credit AND NOT is_delivered AND committed_rows = 0"

_TAKEN_BACK: Final = (
    "credit_rows = 1 AND reversal_rows = 1 AND reversal_cents = credit_cents AND reversal_points = -points "
    "AND credited_customer = last_credited_customer"
)
"""The reversal is the credit's mirror image."""

STAGE: Final = """CASE
    WHEN is_reversed AND has_credit THEN 'reversed'
    WHEN has_credit THEN 'credited'
    WHEN is_dead_letter THEN 'dead_lettered'
    WHEN is_redelivering THEN 'redelivering'
    WHEN is_delivered AND consumed > 0 AND unconsumed = 0 THEN 'consumed'
    WHEN is_delivered THEN 'delivered'
    WHEN is_discarded THEN 'discarded'
    WHEN is_pending THEN 'half'
    WHEN halves > 0 THEN 'rolled_back'
    WHEN has_order THEN 'ordered'
    ELSE 'unknown' END"""
"""How far it has come."""

_ENDED: Final = (
    "has_order AND NOT has_credit AND NOT is_delivered AND committed_rows = 0 AND order_state IN ('CANCELLED', 'EXPIRED') "
    "AND NOT is_reversed"
)
_IS_CANCELLING: Final = "(is_cancelled AND has_credit AND NOT is_reversed AND (is_cancelling OR is_redelivering))"

CLASSES: Final = (
    (Finding.LOG_GAP, "gaps > 0"),
    (Finding.DUPLICATE_ORDER, "order_rows > 1"),
    (Finding.DOUBLE_CREDIT, "credit_rows > 1"),
    (Finding.REVERSED, f"(is_cancelled OR NOT has_order) AND {_TAKEN_BACK}"),
    (Finding.ENDED, _ENDED),
    (Finding.OVERDUE, f"({_IS_CANCELLING} OR is_awaiting) AND is_long_on_its_way"),
    (Finding.IN_FLIGHT, f"{_IS_CANCELLING} OR is_awaiting"),
    (Finding.MISSING_REVERSAL, "is_cancelled AND has_credit AND NOT is_reversed"),
    (Finding.IN_FLIGHT, f"is_reversed AND NOT has_credit AND (is_fresh OR {_MOVES})"),
    (Finding.REVERSAL_WITHOUT_CREDIT, "is_reversed AND NOT has_credit"),
    (Finding.REVERSAL_MISMATCH, f"is_reversed AND NOT COALESCE({_TAKEN_BACK}, FALSE)"),
    (Finding.REVERSED_ORDER, "is_reversed"),
    (Finding.ROLLED_BACK_ORDER, "has_order AND is_marked AND committed_rows = 0"),
    (Finding.OVERDUE, f"({_LACKS_CREDIT_YET} OR ({_LACKS_ORDER} AND is_pending)) AND is_long_on_its_way"),
    (Finding.IN_FLIGHT, f"{_LACKS_CREDIT_YET} OR ({_LACKS_ORDER} AND is_pending)"),
    (Finding.IN_FLIGHT, "NOT (has_order AND has_credit) AND is_fresh"),
    (Finding.MISSING_CREDIT, "has_order AND NOT has_credit"),
    (Finding.CREDIT_WITHOUT_ORDER, "has_credit AND NOT has_order"),
    (Finding.MESSAGE_WITHOUT_ORDER, "is_delivered AND NOT has_order"),
    (Finding.TRANSACTION_WITHOUT_ORDER, "committed_rows > 0 AND NOT has_order"),
    (Finding.ORDER_WITHOUT_TRANSACTION, "has_order AND committed_rows = 0 AND is_old"),
    (Finding.AMOUNT_MISMATCH, "has_order AND (credit_cents IS NULL OR order_cents IS NULL OR credit_cents <> order_cents)"),
    (Finding.POINTS_MISMATCH, "has_order AND (points IS NULL OR points <> expected_points)"),
    (Finding.WRONG_CUSTOMER, "has_order AND (credited_customer IS NULL OR credited_customer <> customer)"),
    (Finding.WRONG_TRANSACTION, "has_order AND credit_transaction_id <> transaction_id"),
    (Finding.ITEMS_MISMATCH, "has_order AND is_old AND (item_cents IS NULL OR item_cents <> order_cents)"),
    (Finding.CURRENCY_MISMATCH, "has_order AND message_currency <> currency"),
    (
        Finding.MESSAGE_MISMATCH,
        "has_order AND (message_cents <> order_cents OR message_customer <> customer OR misnamed > 0 "
        "OR (is_delivered AND message_transaction_id <> transaction_id))",
    ),
    (Finding.DOUBLED_DELIVERY, "was_doubled"),
    (
        Finding.ORDER_WITHOUT_MESSAGE,
        "has_order AND is_logged AND is_old AND NOT is_delivered AND NOT is_pending AND damaged = 0",
    ),
    (Finding.DAMAGED_MESSAGE, "damaged > 0"),
    (Finding.ROLLED_BACK, f"{_LACKS_ORDER} AND (halves > 0 OR discards > 0 OR rolled_back_rows > 0)"),
    (Finding.IN_FLIGHT, f"{_LACKS_ORDER} AND item_cents IS NOT NULL"),
    (
        Finding.MATCHED,
        "order_rows = 1 AND credit_rows = 1 AND (committed_rows > 0 OR NOT is_old) AND credit_cents = order_cents "
        "AND points = expected_points AND credited_customer = customer AND (item_cents = order_cents OR NOT is_old)",
    ),
)
"""The first condition that holds names the class. Items without an order are in flight: they are read before or after it, have no
age of their own, and databases let nobody delete an order that has items."""

_FOUND_MISSING: Final = f"finding IN ('{Finding.MISSING_CREDIT}', '{Finding.ORDER_WITHOUT_MESSAGE}')"
_FOUND_TOO_MUCH: Final = (
    f"finding IN ('{Finding.CREDIT_WITHOUT_ORDER}', '{Finding.MESSAGE_WITHOUT_ORDER}', '{Finding.TRANSACTION_WITHOUT_ORDER}')"
)
_FOUND_MOVING: Final = f"finding IN ('{Finding.IN_FLIGHT}', '{Finding.OVERDUE}')"


def _disagreement(finding: Finding, in_message: str, in_order: str, in_credit: str) -> tuple[tuple[Cause, str], ...]:
    """Who of the three witnesses says something else than the two others."""
    found = f"finding = '{finding}'"
    return (
        (Cause.UNKNOWN, f"{found} AND {in_message} IS NULL"),
        (Cause.LEDGER, f"{found} AND {in_message} = {in_order}"),
        (Cause.ORDER_OR_MESSAGE, f"{found} AND {in_message} = {in_credit}"),
        (Cause.MESSAGE, found),
    )


CAUSES: Final = (
    (Cause.PENDING, f"{_FOUND_MOVING} AND is_pending"),
    (Cause.REDELIVERING, f"{_FOUND_MOVING} AND is_redelivering"),
    (Cause.NOT_CONSUMED, f"{_FOUND_MOVING} AND unconsumed > 0 AND NOT is_dead_letter AND NOT has_credit"),
    (Cause.AWAITING_PAYMENT, f"{_FOUND_MOVING} AND is_awaiting"),
    (Cause.CANCELLING, f"{_FOUND_MOVING} AND is_cancelled AND has_credit"),
    (Cause.YOUNG, _FOUND_MOVING),
    (Cause.DEAD_LETTER, f"{_FOUND_MISSING} AND is_dead_letter"),
    (Cause.DEAD_LETTER, f"finding = '{Finding.MISSING_REVERSAL}' AND is_dead_letter"),
    (Cause.CONSUMED, f"finding = '{Finding.MISSING_REVERSAL}' AND cancel_deliveries > 0"),
    (Cause.NO_MESSAGE, f"finding = '{Finding.MISSING_REVERSAL}' AND is_logged"),
    (Cause.CONSUMED, f"{_FOUND_MISSING} AND is_delivered AND consumed > 0"),
    (Cause.DELIVERED, f"{_FOUND_MISSING} AND is_delivered"),
    (Cause.DAMAGE, f"{_FOUND_MISSING} AND damaged > 0"),
    (Cause.DISCARDED, f"{_FOUND_MISSING} AND is_discarded"),
    (Cause.ROLLED_BACK, f"{_FOUND_MISSING} AND halves > 0"),
    (Cause.NO_TRANSACTION, f"{_FOUND_MISSING} AND committed_rows = 0"),
    (Cause.NO_MESSAGE, f"{_FOUND_MISSING} AND is_logged"),
    (Cause.ROLLED_BACK, f"{_FOUND_TOO_MUCH} AND is_marked AND committed_rows = 0"),
    (Cause.ORDER_LOST, f"{_FOUND_TOO_MUCH} AND committed_rows > 0"),
    (Cause.ROLLED_BACK, f"{_FOUND_TOO_MUCH} AND halves > 0 AND NOT is_delivered AND NOT is_pending"),
    (Cause.NO_TRANSACTION, f"{_FOUND_TOO_MUCH} AND (is_delivered OR halves > 0)"),
    (Cause.DAMAGE, f"{_FOUND_TOO_MUCH} AND damaged > 0"),
    (Cause.NO_MESSAGE, f"{_FOUND_TOO_MUCH} AND {{is_log_read}}"),
    *_disagreement(Finding.AMOUNT_MISMATCH, "message_cents", "order_cents", "credit_cents"),
    *_disagreement(Finding.WRONG_CUSTOMER, "message_customer", "customer", "credited_customer"),
    (Cause.LEDGER, f"finding = '{Finding.POINTS_MISMATCH}'"),
    *_disagreement(Finding.WRONG_TRANSACTION, "message_transaction_id", "transaction_id", "credit_transaction_id"),
    (Cause.ONE_MESSAGE, f"finding = '{Finding.DOUBLE_CREDIT}' AND credit_transaction_id = last_credit_transaction_id"),
    (Cause.SEVERAL_MESSAGES, f"finding = '{Finding.DOUBLE_CREDIT}' AND credit_transaction_id <> last_credit_transaction_id"),
    (Cause.MARKER, f"finding = '{Finding.ROLLED_BACK_ORDER}'"),
    (Cause.AMOUNT, f"finding = '{Finding.MESSAGE_MISMATCH}' AND message_cents <> order_cents"),
    (Cause.CUSTOMER, f"finding = '{Finding.MESSAGE_MISMATCH}' AND message_customer <> customer"),
    (Cause.NAME, f"finding = '{Finding.MESSAGE_MISMATCH}' AND misnamed > 0"),
    (Cause.TRANSACTION, f"finding = '{Finding.MESSAGE_MISMATCH}'"),
    (Cause.DISCARDED, f"finding = '{Finding.ROLLED_BACK}' AND is_discarded"),
    (Cause.DAMAGE, f"finding = '{Finding.DAMAGED_MESSAGE}'"),
)
"""The first condition that holds names the cause."""

_WITHOUT_CAUSE: Final = (
    Finding.MATCHED,
    Finding.ROLLED_BACK,
    Finding.REVERSED,
    Finding.ENDED,
    Finding.REVERSED_ORDER,
    Finding.REVERSAL_WITHOUT_CREDIT,
    Finding.REVERSAL_MISMATCH,
    Finding.DUPLICATE_ORDER,
    Finding.ORDER_WITHOUT_TRANSACTION,
    Finding.ITEMS_MISMATCH,
    Finding.CURRENCY_MISMATCH,
    Finding.DOUBLED_DELIVERY,
    Finding.LOG_GAP,
    Finding.UNCLASSIFIED,
)
"""The class says all there is to say."""

AT_STAKE: Final = f"""CASE
    WHEN finding IN ('{Finding.MISSING_CREDIT}', '{Finding.OVERDUE}') THEN order_cents
    WHEN finding IN ('{Finding.ROLLED_BACK_ORDER}', '{Finding.REVERSED_ORDER}') THEN order_cents
    WHEN finding = '{Finding.MISSING_REVERSAL}' THEN credit_cents
    WHEN finding IN ('{Finding.REVERSAL_WITHOUT_CREDIT}', '{Finding.REVERSAL_MISMATCH}') THEN reversal_cents
    WHEN finding = '{Finding.CREDIT_WITHOUT_ORDER}' THEN credit_cents
    WHEN finding IN ('{Finding.DOUBLE_CREDIT}', '{Finding.AMOUNT_MISMATCH}') THEN ABS(credit_cents - order_cents)
    WHEN finding = '{Finding.WRONG_CUSTOMER}' THEN credit_cents
    WHEN finding = '{Finding.ITEMS_MISMATCH}' THEN ABS(item_cents - order_cents)
    WHEN finding = '{Finding.MESSAGE_MISMATCH}' THEN ABS(message_cents - order_cents) END"""
"""Cents that are in the wrong place, as far as the class tells."""


def finding_of() -> str:
    """The class of a history with its facts; `unclassified` if no condition holds."""
    return _first(CLASSES, f"'{Finding.UNCLASSIFIED}'")


def cause_of(log_begins_ms: int | None) -> str:
    """The cause of a history with its class; NULL where the class needs none."""
    is_log_read = "FALSE" if log_begins_ms is None else "TRUE"
    causes = [(cause, condition.replace("{is_log_read}", is_log_read)) for cause, condition in CAUSES]
    needs_none = ", ".join(f"'{finding}'" for finding in _WITHOUT_CAUSE)
    return _first(causes, f"CASE WHEN finding IN ({needs_none}) THEN NULL ELSE '{Cause.UNKNOWN}' END")


def _first(named: tuple[tuple[str, str], ...] | list[tuple[Cause, str]], otherwise: str) -> str:
    whens = "\n".join(f"WHEN {condition} THEN '{name}'" for name, condition in named)
    return f"CASE {whens} ELSE {otherwise} END"
