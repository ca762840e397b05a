"""Defines named conditions on a history, and rules that derive the class and the cause from them.

The SQL works in both Spark and SQLite. It is applied in three steps, each to the columns of the earlier steps: facts, then stage
and class, then cause and money at stake. A history also has the columns `markers` and `cancel_markers`: the numbers of
ROLLED_BACK markers of its transaction and of its cancellation.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import starmap
from typing import Final

from order_messages.states import BY_REFUSAL, BY_REPAIR, OrderState
from pipelines.judging.classes import Cause, Finding
from pipelines.judging.cut_off import CutOff
from pipelines.judging.history import COUNTS, IN_THE_INBOX

_NEVER: Final = "-1"


@dataclass(frozen=True, slots=True)
class KnownRepairs:
    """The repairs recorded in audit files."""

    reversals: frozenset[tuple[str, str]] = frozenset()
    """Pairs of the id of a step that reversed a credit, and the id of the order."""
    published: frozenset[str] = frozenset()
    """The ids of the orders whose message a repair step published."""


def facts(cut_off: CutOff, log_begins_ms: int | None, repairs: KnownRepairs | None = None) -> dict[str, str]:
    """Returns named conditions on a history.

    `log_begins_ms` is the time in milliseconds since which the commit logs are complete; None without a log. Only the repairs in
    `repairs` are accepted; None accepts all.
    """

    def is_young(time: str) -> str:
        return f"({time} > {cut_off.judged_until_ms} AND {time} <= {cut_off.future_from_ms})"

    def is_logged(time: str) -> str:
        return "FALSE" if log_begins_ms is None else f"NOT COALESCE({time} < {log_begins_ms}, FALSE)"

    def is_before(time: str, other: str) -> str:
        """Returns the SQL condition that `time` is before `other` by more than the grace period, because clocks may differ."""
        return f"{time} < {_wide(other)} - {cut_off.grace_seconds * 1000}"

    def has_half_logged(time: str) -> str:
        """Returns the SQL condition that the log has the half message of a transaction that was written at `time`.

        A half message is sent at most the grace period before its transaction is written.
        """
        if not log_begins_ms:
            return "FALSE" if log_begins_ms is None else "TRUE"
        return f"COALESCE({time} > {log_begins_ms + cut_off.grace_seconds * 1000}, FALSE)"

    old = f"<= {cut_off.judged_until_ms}"
    overdue = f"<= {cut_off.overdue_until_ms}"
    claims = {
        "has_order": "order_rows > 0",
        "has_credit": "credit_rows > 0",
        "is_reversed": "reversal_rows > 0",
        "is_cancelled": "cancelled_rows > 0",
        "is_from_future": f"latest_at_ms > {cut_off.impossible_from_ms}",
        "is_from_past": f"ordered_at_ms < {cut_off.impossible_until_ms} OR credited_at_ms < {cut_off.impossible_until_ms}",
        "is_too_early": " OR ".join(starmap(is_before, _FOLLOWS)),
        "is_awaiting": (
            f"order_state = '{OrderState.AWAITING_PAYMENT}' AND committed_rows = 0 AND credit_rows = 0 AND NOT "
            f"COALESCE(delivered_at_ms {old}, FALSE)"
        ),
        "is_changing": (
            f"{is_young('paid_at_ms')} OR {is_young('ended_at_ms')} OR {is_young('cancelled_at_ms')} "
            f"OR {is_young('cancel_delivered_at_ms')} "
            f"OR (order_state = '{OrderState.AWAITING_PAYMENT}' AND ({is_young('delivered_at_ms')} "
            f"OR (deliveries = 0 AND (credit_rows = 0 OR {is_young('credited_at_ms')}))))"
        ),
        "is_cancelling": (
            f"({is_young('cancelled_at_ms')} AND NOT COALESCE(cancel_delivered_at_ms {old}, FALSE)) "
            "OR unconsumed_cancellations > 0 OR waiting_reversals > 0 OR (cancel_halves > 0 AND cancel_deliveries = 0 "
            f"AND last_cancel_half_at_ms > COALESCE(last_decided_cancel_half_at_ms, {_NEVER}))"
        ),
        "is_taking_back": is_young("reversed_at_ms"),
        "is_annulled": _ANNULLED,
        "is_by_repair": f"{_NAMES_REPAIR} AND NOT ({_unaudited_reversal(repairs)})",
        "is_unaudited_reversal": f"{_NAMES_REPAIR} AND {_unaudited_reversal(repairs)}",
        "is_sent_by_repair": _SENT_BY_REPAIR,
        "is_unaudited_message": _unaudited_message(repairs),
        # The audit is read before the tables and the log, so it may lack a repair that is made in between.
        "is_repairing": (
            f"{is_young('reversed_at_ms')} OR {is_young('last_delivered_at_ms')} OR {is_young('cancel_delivered_at_ms')}"
        ),
        "is_delivered": "deliveries > 0",
        "is_marked": "markers > 0 OR rolled_back_rows > 0",
        "is_decided_twice": (
            "(committed_rows > 0 AND (markers > 0 OR rolled_back_transaction_id = transaction_id)) "
            "OR (cancelled_rows > 0 AND cancel_markers > 0)"
        ),
        "is_old": f"NOT COALESCE({is_young('ordered_at_ms')}, FALSE) OR half_at_ms {old} OR delivered_at_ms {old}",
        "is_logged": is_logged(_TOLD_AT),
        "is_cancellation_logged": is_logged("cancelled_at_ms"),
        "has_half_logged": has_half_logged("ordered_at_ms"),
        "has_cancel_half_logged": has_half_logged("cancelled_at_ms"),
        "is_pending": (
            f"halves > 0 AND deliveries = 0 AND last_half_at_ms > COALESCE(last_decided_half_at_ms, {_NEVER}) "
            f"AND last_half_at_ms > COALESCE(discarded_at_ms, {_NEVER})"
        ),
        "is_decided": "halves > 0 AND last_decided_half_at_ms >= last_half_at_ms",
        "is_credit_new": is_young("credited_at_ms"),
        "is_discarded": f"discards > 0 AND deliveries = 0 AND discarded_at_ms >= COALESCE(last_half_at_ms, {_NEVER})",
        "is_dead_letter": (
            f"dead_letters > 0 AND dead_at_ms >= COALESCE(delayed_at_ms, {_NEVER}) "
            f"AND dead_at_ms >= COALESCE(retried_at_ms, {_NEVER})"
        ),
        "is_redelivering": (
            f"(delayed_at_ms > COALESCE(retried_at_ms, {_NEVER}) AND delayed_at_ms > COALESCE(dead_at_ms, {_NEVER})) "
            f"OR (unconsumed_retries > 0 AND retried_at_ms > COALESCE(dead_at_ms, {_NEVER}))"
        ),
        "has_inbox_row": _HAS_INBOX_ROW,
        "is_waiting": _lacks_entry("waiting"),
        "is_parked": _lacks_entry("parked"),
        "is_left_over": _stands_beside_entry("waiting", old),
        "is_left_over_for_long": _stands_beside_entry("waiting", overdue),
        "is_parked_beside_entry": _stands_beside_entry("parked", old),
        # Records of the log take precedence: the order's time counts only if the log has no record of it.
        "is_fresh": (
            f"{is_young('last_delivered_at_ms')} OR {is_young('retried_at_ms')} OR (deliveries = 0 AND ("
            f"{is_young('last_half_at_ms')} OR {is_young('paid_at_ms')} OR (halves = 0 AND ({is_young('ordered_at_ms')} "
            f"OR (order_rows = 0 AND ({is_young('credited_at_ms')} OR {is_young('decided_at_ms')} "
            f"OR {is_young('received_at_ms')})) "
            f"OR (order_rows = 0 AND credit_rows = 0 AND {is_young('cancel_delivered_at_ms')})))))"
        ),
        "was_doubled": (
            "(deliveries > 1 AND (born_at_ms = last_born_at_ms OR (halves > 0 AND deliveries > halves))) OR "
            "(cancel_deliveries > 1 AND (cancel_born_at_ms = last_cancel_born_at_ms "
            "OR (cancel_halves > 0 AND cancel_deliveries > cancel_halves)))"
        ),
        "is_long_on_its_way": (
            f"CASE WHEN cancelled_rows > 0 THEN cancelled_at_ms {overdue} WHEN paid_at_ms IS NOT NULL THEN paid_at_ms {overdue} "
            f"WHEN order_state = '{OrderState.AWAITING_PAYMENT}' AND pay_until_ms IS NOT NULL THEN pay_until_ms {overdue} "
            f"ELSE COALESCE(ordered_at_ms {overdue}, FALSE) OR COALESCE(half_at_ms {overdue}, FALSE) "
            f"OR COALESCE(delivered_at_ms {overdue}, FALSE) END"
        ),
    }
    return {name: f"COALESCE({claim}, FALSE)" for name, claim in claims.items()}


def _lacks_entry(status: str) -> str:
    """Returns the SQL condition that the inbox has a message in this status whose effect is missing."""
    return (
        f"({status}_credits > 0 AND credit_rows = 0) OR ({status}_reversals > 0 AND reversal_rows = 0) "
        f"OR ({status}_refusals > 0 AND cancelled_rows = 0)"
    )


def _stands_beside_entry(status: str, old: str) -> str:
    """Returns the SQL condition that the inbox has a message in this status although its entry was written long ago.

    A redelivered message is stored although its entry exists, and is removed soon. The time of the entry is also checked, because
    the inbox is read before the ledger, and a message may be processed in between.
    """
    return (
        f"received_at_ms {old} AND (({status}_credits > 0 AND credit_rows > 0 AND credited_at_ms {old}) "
        f"OR ({status}_reversals > 0 AND reversal_rows > 0 AND reversed_at_ms {old}))"
    )


def _wide(number: str) -> str:
    """Returns SQL that widens a number, so that no sum or difference overflows. One absurd value must not make the run fail."""
    return f"CAST({number} AS DECIMAL(38, 0))"


def _begins_with(text: str, beginning: str) -> str:
    return f"SUBSTR({text}, 1, {len(beginning)}) = '{beginning}'"


_HAS_INBOX_ROW: Final = f"{' + '.join(name for name in COUNTS if name.startswith(IN_THE_INBOX))} > 0"
_NO_CANCELLATION_STORED: Final = "waiting_reversals + parked_reversals = 0"
_CREDIT_IS_STORED: Final = "waiting_credits + parked_credits > 0"
"""The SQL condition that the inbox has the message of the order. The inbox is read before the order, so this is a delivery."""
_NAMES_REPAIR: Final = _begins_with("reversal_message_id", BY_REPAIR)
_SENT_BY_REPAIR: Final = "deliveries > commits OR cancel_deliveries > cancel_commits"
"""The SQL condition that a message was sent without a transaction. Only repairs do that, but not for cancellations."""


def _unaudited_reversal(repairs: KnownRepairs | None) -> str:
    if repairs is None:
        return "FALSE"
    return _is_none_of("reversal_message_id || ' ' || order_id", (f"{BY_REPAIR}{step} {o}" for step, o in repairs.reversals))


def _unaudited_message(repairs: KnownRepairs | None) -> str:
    if repairs is None:
        return "FALSE"
    return f"cancel_deliveries > cancel_commits OR (deliveries > commits AND {_is_none_of('order_id', repairs.published)})"


def _is_none_of(text: str, known: Iterable[str]) -> str:
    """Returns the SQL condition that `text` is none of the `known` strings.

    The strings are compared in hex, because Spark and SQLite parse quotes differently.
    """
    listed = ", ".join(f"'{one.encode().hex().upper()}'" for one in sorted(known))
    return f"NOT COALESCE(HEX({text}) IN ({listed}), FALSE)" if listed else "TRUE"


_TOLD_AT: Final = "COALESCE(paid_at_ms, ordered_at_ms)"
"""The SQL expression for the time after which the order's message may be sent and its credit may be written."""

MARKED: Final = {
    "markers": "COALESCE(transaction_id, half_transaction_id, message_transaction_id, credit_transaction_id)",
    "cancel_markers": "cancellation_transaction_id",
}
"""Maps each column that counts markers to the SQL of its transaction id. The id in a COMMITTED row takes precedence."""

_FOLLOWS: Final = (
    ("credited_at_ms", _TOLD_AT),
    ("received_at_ms", _TOLD_AT),
    ("delivered_at_ms", _TOLD_AT),
    ("half_at_ms", "ordered_at_ms"),
    ("decided_at_ms", "ordered_at_ms"),
    ("pay_until_ms", "ordered_at_ms"),
    ("paid_at_ms", "ordered_at_ms"),
    ("ended_at_ms", _TOLD_AT),
    ("cancelled_at_ms", _TOLD_AT),
    ("reversed_at_ms", _TOLD_AT),
    ("cancel_delivered_at_ms", "cancelled_at_ms"),
)
"""Pairs of times of an order. The first time must not be before the second one."""

_ANNULLED: Final = (
    "credit_rows = 1 AND reversal_rows = 1 AND credit_cents = 0 AND reversal_cents = 0 "
    f"AND {_begins_with('credit_message_id', BY_REFUSAL)} AND {_begins_with('reversal_message_id', BY_REFUSAL)}"
)
"""The SQL condition that the credit service has refused the order, with a credit and a reversal of zero."""

_MOVES: Final = "(is_pending OR is_redelivering OR waiting_credits > 0 OR (unconsumed > 0 AND NOT is_dead_letter))"
_LACKS_CREDIT_YET: Final = f"has_order AND NOT has_credit AND {_MOVES}"
_HAS_TRANSACTION: Final = "(committed_rows > 0 OR pending_rows > 0 OR cancelled_rows > 0)"
_LACKS_ORDER: Final = f"NOT has_order AND NOT has_credit AND NOT is_delivered AND NOT {_HAS_TRANSACTION}"

_TAKEN_BACK: Final = (
    "credit_rows = 1 AND reversal_rows = 1 AND reversal_cents = credit_cents "
    f"AND {_wide('reversal_points')} = -{_wide('points')} "
    "AND credited_customer = last_credited_customer"
)
"""The SQL condition that the reversal has the same amount and customer as the credit."""

_NAMES_CANCELLATION: Final = (
    "is_cancelled AND reversal_transaction_id = cancellation_transaction_id AND reversal_message_id = cancellation_transaction_id"
)
_ASKED_FOR: Final = (
    f"is_by_repair OR is_annulled OR ({_NAMES_CANCELLATION} "
    "AND (cancel_deliveries > 0 OR damaged > 0 OR is_taking_back OR NOT is_cancellation_logged))"
)
"""The SQL condition that the reversal results from a repair, from the refusal of the order, or from a published cancellation."""

_GOES_WITH: Final = {
    OrderState.PLACED: f"""cancelled_rows = 0 AND pending_rows = 0 AND pay_until_ms IS NULL AND paid_at_ms IS NULL
        AND ended_at_ms IS NULL AND cancel_deliveries = 0 AND {_NO_CANCELLATION_STORED}""",
    OrderState.PAID: f"""cancelled_rows = 0 AND pending_rows = 0 AND paid_at_ms <= pay_until_ms AND ended_at_ms IS NULL
        AND cancel_deliveries = 0 AND {_NO_CANCELLATION_STORED}""",
    OrderState.AWAITING_PAYMENT: """cancelled_rows = 0 AND committed_rows = 0 AND pending_rows = 1 AND credit_rows = 0
        AND deliveries = 0 AND cancel_deliveries = 0
        AND pay_until_ms IS NOT NULL AND paid_at_ms IS NULL AND ended_at_ms IS NULL""",
    OrderState.CANCELLED: """pending_rows = 0 AND ended_at_ms IS NOT NULL AND (paid_at_ms IS NULL OR paid_at_ms <= pay_until_ms)
        AND CASE
            WHEN committed_rows = 0
            THEN cancelled_rows = 0 AND rolled_back_rows > 0 AND paid_at_ms IS NULL AND cancel_deliveries = 0
            ELSE cancelled_rows = 1 AND (pay_until_ms IS NULL) = (paid_at_ms IS NULL) END""",
    OrderState.EXPIRED: """committed_rows = 0 AND cancelled_rows = 0 AND pending_rows = 0 AND rolled_back_rows > 0
        AND cancel_deliveries = 0 AND paid_at_ms IS NULL AND ended_at_ms >= pay_until_ms""",
}
"""Maps each state of an order to the SQL condition that its rows and messages must meet.

A separate rule checks that an order that has not ended has its COMMITTED row.
"""

_STATE: Final = "\n    ".join(
    ("CASE order_state", *(f"WHEN '{state}' THEN {_GOES_WITH[state]}" for state in OrderState), "ELSE FALSE END")
)

STAGE: Final = """CASE
    WHEN is_reversed AND has_credit THEN 'reversed'
    WHEN has_credit THEN 'credited'
    WHEN is_waiting THEN 'waiting'
    WHEN is_parked THEN 'parked'
    WHEN is_dead_letter THEN 'dead_lettered'
    WHEN is_redelivering THEN 'redelivering'
    WHEN is_delivered AND consumed > 0 AND unconsumed = 0 THEN 'consumed'
    WHEN is_delivered THEN 'delivered'
    WHEN is_discarded THEN 'discarded'
    WHEN is_pending THEN 'half'
    WHEN halves > 0 THEN 'rolled_back'
    WHEN has_order THEN 'ordered'
    ELSE 'unknown' END"""
"""The SQL expression for the stage of an order."""

_ENDED: Final = (
    f"has_order AND NOT has_credit AND NOT is_delivered AND NOT ({_CREDIT_IS_STORED}) AND committed_rows = 0 AND NOT is_reversed "
    f"AND COALESCE(order_state IN ('{OrderState.CANCELLED}', '{OrderState.EXPIRED}'), FALSE)"
)
_IS_CANCELLING: Final = (
    "(is_cancelled AND has_credit AND NOT is_reversed AND (is_cancelling OR is_redelivering)) "
    "OR (is_annulled AND has_order AND NOT is_cancelled AND (is_taking_back OR waiting_refusals > 0))"
)

_Conditions = tuple[tuple[Finding, str], ...]


def _agree(finding: Finding, where: str, claim: str) -> tuple[Finding, str]:
    """Returns `finding` with the condition that `where` is true but `claim` is not.

    A claim that is NULL, because a value is missing, counts as not true. A rule therefore lists the values that must agree.
    """
    return finding, f"{where} AND NOT COALESCE({claim}, FALSE)"


def _both(said_in_message: str, said_in_order: str) -> str:
    """Returns the condition that all delivered messages agree with the order.

    It compares the minimum and the maximum of the messages' values with the order's value.
    """
    return f"{said_in_message} = {said_in_order} AND last_{said_in_message} = {said_in_order}"


def _on_its_way(condition: str, *, may_be_late: bool = True) -> _Conditions:
    """Returns the conditions of WRONG_TIME, OVERDUE and IN_FLIGHT for orders that meet `condition`.

    An order with a time in the future is not in flight.
    """
    late = ((Finding.OVERDUE, f"({condition}) AND is_long_on_its_way"),) if may_be_late else ()
    return (Finding.WRONG_TIME, f"({condition}) AND is_from_future"), *late, (Finding.IN_FLIGHT, condition)


_ITEMS_SAID: Final = "(without_items > 0 OR message_items IS NOT NULL)"
_CREDITED_ORDER: Final = "has_order AND has_credit AND NOT is_annulled"
_MESSAGE_OF_ORDER: Final = {
    Cause.AMOUNT: _both("message_cents", "order_cents"),
    Cause.CUSTOMER: _both("message_customer", "customer"),
    Cause.NAME: "misnamed = 0",
    Cause.TIME: _both("message_placed_at_ms", "ordered_at_ms"),
    Cause.TRANSACTION: f"(committed_rows = 0 OR ({_both('message_transaction_id', 'transaction_id')}))",
}
"""Maps each cause to the condition that an order's delivered messages violate in that case."""
_MESSAGE_OF_CANCELLATION: Final = {
    Cause.AMOUNT: _both("cancel_cents", "order_cents"),
    Cause.CUSTOMER: _both("cancel_customer", "customer"),
    Cause.NAME: "cancel_misnamed = 0",
    Cause.TIME: f"(NOT is_cancelled OR ({_both('cancel_ended_at_ms', 'ended_at_ms')}))",
    Cause.TRANSACTION: f"(NOT is_cancelled OR ({_both('cancel_message_id', 'cancellation_transaction_id')}))",
}
"""Maps each cause to the condition that the messages of an order's cancellation violate in that case.

An order may be cancelled after the tables are read and before the log is read.
"""
_UNSENT: Final = (
    "damaged = 0 AND ((has_half_logged AND halves = 0 AND commits > 0) "
    "OR (has_cancel_half_logged AND cancel_halves = 0 AND cancel_commits > 0))"
)
"""The SQL condition that a message was committed without a half message in the log.

Repairs send neither half messages nor committed ones.
"""

CONTENT: Final[_Conditions] = (
    _agree(Finding.AMOUNT_MISMATCH, _CREDITED_ORDER, "credit_cents = order_cents"),
    _agree(Finding.AMOUNT_MISMATCH, "has_order AND NOT is_annulled", "order_cents >= 0"),
    _agree(Finding.POINTS_MISMATCH, _CREDITED_ORDER, "points = expected_points"),
    _agree(Finding.WRONG_CUSTOMER, "has_order AND has_credit", "credited_customer = customer"),
    _agree(
        Finding.WRONG_TRANSACTION,
        "has_order AND has_credit AND committed_rows > 0",
        "credit_transaction_id = transaction_id "
        f"AND credit_message_id = CASE WHEN is_annulled THEN '{BY_REFUSAL}' || transaction_id ELSE transaction_id END",
    ),
    (Finding.WRONG_TIME, "is_from_future OR is_from_past OR is_too_early"),
    _agree(Finding.ITEMS_MISMATCH, "has_order AND is_old", "item_cents = order_cents"),
    (Finding.MESSAGE_MISMATCH, "has_order AND (unreadable > 0 OR cancel_unreadable > 0)"),
    _agree(Finding.CURRENCY_MISMATCH, "has_order AND is_delivered", _both("message_currency", "currency")),
    _agree(Finding.CURRENCY_MISMATCH, "has_order AND cancel_deliveries > 0", _both("cancel_currency", "currency")),
    _agree(Finding.MESSAGE_MISMATCH, "has_order AND is_delivered", " AND ".join(_MESSAGE_OF_ORDER.values())),
    _agree(Finding.MESSAGE_MISMATCH, "has_order AND cancel_deliveries > 0", " AND ".join(_MESSAGE_OF_CANCELLATION.values())),
    _agree(
        Finding.ITEMS_MISMATCH,
        f"has_order AND is_delivered AND is_old AND {_ITEMS_SAID}",
        f"without_items = 0 AND {_both('message_items', 'item_mark')}",
    ),
    (Finding.MESSAGE_MISMATCH, f"has_order AND {_UNSENT}"),
    (Finding.MESSAGE_MISMATCH, "has_order AND is_unaudited_message AND NOT is_repairing"),
    (Finding.DOUBLED_DELIVERY, "was_doubled"),
    (Finding.UNKNOWN_ROW, "unwritten > 0"),
)
"""The classes and conditions for an order's existing rows and messages. They apply even while something is still missing."""

CLASSES: Final[_Conditions] = (
    (Finding.LOG_GAP, "gaps > 0"),
    (Finding.DUPLICATE_ORDER, "order_rows > 1"),
    (Finding.DOUBLE_CREDIT, "credit_rows > 1"),
    (Finding.DUPLICATE_TRANSACTION, "committed_rows > 1 OR pending_rows > 1 OR cancelled_rows > 1"),
    (Finding.UNKNOWN_ROW, "unknown_rows > 0"),
    (Finding.ROLLED_BACK_ORDER, "has_order AND is_decided_twice"),
    _agree(Finding.STATE_MISMATCH, "has_order AND is_old AND NOT is_changing", _STATE),
    (Finding.WRONG_TIME, f"{_ENDED} AND is_from_future"),
    (Finding.ENDED, _ENDED),
    *_on_its_way(f"{_IS_CANCELLING} OR is_awaiting"),
    (Finding.MISSING_REVERSAL, "is_cancelled AND has_credit AND NOT is_reversed"),
    *_on_its_way(f"is_reversed AND NOT has_credit AND (is_fresh OR is_taking_back OR {_MOVES})", may_be_late=False),
    (Finding.REVERSAL_WITHOUT_CREDIT, "is_reversed AND NOT has_credit"),
    _agree(Finding.REVERSAL_MISMATCH, "is_reversed", _TAKEN_BACK),
    (Finding.REVERSED_ORDER, "is_reversed AND has_order AND NOT is_cancelled"),
    *_on_its_way("is_unaudited_reversal AND is_repairing", may_be_late=False),
    _agree(Finding.REVERSAL_MISMATCH, "is_reversed", _ASKED_FOR),
    (Finding.ROLLED_BACK_ORDER, "has_order AND is_marked AND committed_rows = 0"),
    *_on_its_way(f"({_LACKS_CREDIT_YET}) OR ({_LACKS_ORDER} AND is_pending)"),
    *_on_its_way("NOT (has_order AND has_credit) AND is_fresh", may_be_late=False),
    (Finding.MISSING_CREDIT, "has_order AND NOT has_credit"),
    (Finding.CREDIT_WITHOUT_ORDER, "has_credit AND NOT has_order AND NOT is_reversed"),
    (
        Finding.MESSAGE_WITHOUT_ORDER,
        "(is_delivered OR cancel_deliveries > 0 OR has_inbox_row) AND NOT has_order AND NOT is_reversed",
    ),
    (Finding.TRANSACTION_WITHOUT_ORDER, f"{_HAS_TRANSACTION} AND NOT has_order AND NOT is_by_repair"),
    (Finding.ORDER_WITHOUT_TRANSACTION, "has_order AND committed_rows = 0 AND is_old"),
    *CONTENT,
    (
        Finding.ORDER_WITHOUT_MESSAGE,
        "has_order AND is_logged AND is_old AND NOT is_delivered AND NOT (is_pending AND is_credit_new) AND damaged = 0",
    ),
    (Finding.DAMAGED_MESSAGE, "damaged > 0"),
    *_on_its_way("has_order AND is_unaudited_message AND is_repairing", may_be_late=False),
    # A redelivery that waits beside its entry changes nothing when it is processed: the order is right, and its message is still
    # on its way. One that was parked there contradicts the entry, and so the order, with which the entry agrees.
    (Finding.MESSAGE_MISMATCH, "is_parked_beside_entry"),
    (Finding.OVERDUE, "is_left_over_for_long"),
    (Finding.IN_FLIGHT, "is_left_over"),
    (Finding.REVERSED, f"(is_cancelled OR NOT has_order) AND {_TAKEN_BACK}"),
    (Finding.ROLLED_BACK, f"{_LACKS_ORDER} AND (halves > 0 OR cancel_halves > 0 OR discards > 0 OR rolled_back_rows > 0)"),
    (Finding.IN_FLIGHT, f"{_LACKS_ORDER} AND item_cents IS NOT NULL"),
    (
        Finding.MATCHED,
        "order_rows = 1 AND credit_rows = 1 AND NOT is_reversed AND (committed_rows > 0 OR NOT is_old) "
        "AND credit_cents = order_cents AND points = expected_points AND credited_customer = customer "
        "AND (item_cents = order_cents OR NOT is_old)",
    ),
)
"""The classes with their conditions. The first condition that holds determines the class.

Items without an order always count as in flight, because they may have been read before or after their order, and have no time
that shows their age. An order with items cannot be deleted, because of the foreign key.
"""

_FOUND_MISSING: Final = f"finding IN ('{Finding.MISSING_CREDIT}', '{Finding.ORDER_WITHOUT_MESSAGE}')"
_FOUND_TOO_MUCH: Final = (
    f"finding IN ('{Finding.CREDIT_WITHOUT_ORDER}', '{Finding.MESSAGE_WITHOUT_ORDER}', '{Finding.TRANSACTION_WITHOUT_ORDER}')"
)
_KNOWN_STATES: Final = ", ".join(f"'{state}'" for state in OrderState)
_STATES_THAT_STAND: Final = ", ".join(f"'{state}'" for state in OrderState if state.is_published)
_STATE_IS_UNKNOWN: Final = f"NOT COALESCE(order_state IN ({_KNOWN_STATES}), FALSE)"
_IS_TAKEN_BACK: Final = f"(is_cancelled OR cancel_deliveries > 0 OR NOT ({_NO_CANCELLATION_STORED}))"
_KEEPS_CREDIT: Final = "has_credit AND NOT is_reversed"
_FOUND_MOVING: Final = f"finding IN ('{Finding.IN_FLIGHT}', '{Finding.OVERDUE}')"


def _disagreement(finding: Finding, in_message: str, in_order: str, in_credit: str) -> tuple[tuple[Cause, str], ...]:
    """Returns the causes that name the one source that differs from the other two."""
    found = f"finding = '{finding}'"
    return (
        (Cause.UNKNOWN, f"{found} AND {in_message} IS NULL"),
        (Cause.LEDGER, f"{found} AND {in_message} = {in_order}"),
        (Cause.ORDER_OR_MESSAGE, f"{found} AND {in_message} = {in_credit}"),
        (Cause.MESSAGE, found),
    )


def _differs(in_message: str, in_cancellation: str) -> str:
    """Returns the condition that a message of the order, or of its cancellation, violates the condition given for it."""
    return (
        f"((is_delivered AND NOT COALESCE({in_message}, FALSE)) "
        f"OR (cancel_deliveries > 0 AND NOT COALESCE({in_cancellation}, FALSE)))"
    )


_MESSAGE_DIFFERS: Final = {cause: _differs(claim, _MESSAGE_OF_CANCELLATION[cause]) for cause, claim in _MESSAGE_OF_ORDER.items()}

CAUSES: Final = (
    (Cause.WAITING, f"{_FOUND_MOVING} AND (is_waiting OR is_left_over)"),
    (Cause.PENDING, f"{_FOUND_MOVING} AND is_pending"),
    (Cause.REDELIVERING, f"{_FOUND_MOVING} AND is_redelivering"),
    (Cause.NOT_CONSUMED, f"{_FOUND_MOVING} AND unconsumed > 0 AND NOT is_dead_letter AND NOT has_credit"),
    (Cause.PARKED, f"{_FOUND_MOVING} AND is_parked"),
    (Cause.AWAITING_PAYMENT, f"{_FOUND_MOVING} AND is_awaiting"),
    (Cause.YOUNG, f"{_FOUND_MOVING} AND is_unaudited_reversal"),
    (Cause.CANCELLING, f"{_FOUND_MOVING} AND has_credit AND (is_cancelled OR is_reversed)"),
    (Cause.YOUNG, _FOUND_MOVING),
    (Cause.PARKED, f"finding IN ('{Finding.MISSING_CREDIT}', '{Finding.REVERSAL_WITHOUT_CREDIT}') AND parked_credits > 0"),
    (Cause.PARKED, f"finding = '{Finding.MISSING_REVERSAL}' AND parked_reversals > 0"),
    (Cause.PARKED, f"finding = '{Finding.REVERSED_ORDER}' AND parked_refusals > 0"),
    (Cause.DISMISSED, f"finding = '{Finding.MISSING_CREDIT}' AND dismissed_credits > 0"),
    (Cause.DISMISSED, f"finding = '{Finding.MISSING_REVERSAL}' AND dismissed_reversals > 0"),
    (Cause.DEAD_LETTER, f"{_FOUND_MISSING} AND is_dead_letter"),
    (Cause.DEAD_LETTER, f"finding = '{Finding.MISSING_REVERSAL}' AND is_dead_letter"),
    (Cause.CONSUMED, f"finding = '{Finding.MISSING_REVERSAL}' AND cancel_deliveries > 0"),
    (Cause.NO_MESSAGE, f"finding = '{Finding.MISSING_REVERSAL}' AND is_logged"),
    (Cause.CONSUMED, f"{_FOUND_MISSING} AND is_delivered AND consumed > 0"),
    (Cause.DELIVERED, f"{_FOUND_MISSING} AND is_delivered"),
    (Cause.DAMAGE, f"{_FOUND_MISSING} AND damaged > 0"),
    (Cause.DISCARDED, f"{_FOUND_MISSING} AND is_discarded"),
    (Cause.PENDING, f"{_FOUND_MISSING} AND is_pending"),
    (Cause.ROLLED_BACK, f"{_FOUND_MISSING} AND is_decided"),
    (Cause.NO_TRANSACTION, f"{_FOUND_MISSING} AND committed_rows = 0"),
    (Cause.NO_MESSAGE, f"{_FOUND_MISSING} AND is_logged"),
    (Cause.ROLLED_BACK, f"{_FOUND_TOO_MUCH} AND is_marked AND committed_rows = 0"),
    (Cause.ORDER_LOST, f"{_FOUND_TOO_MUCH} AND (committed_rows > 0 OR pending_rows > 0)"),
    (Cause.ROLLED_BACK, f"{_FOUND_TOO_MUCH} AND is_decided AND NOT is_delivered"),
    (Cause.NO_TRANSACTION, f"{_FOUND_TOO_MUCH} AND (is_delivered OR cancel_deliveries > 0 OR halves > 0)"),
    (Cause.DAMAGE, f"{_FOUND_TOO_MUCH} AND damaged > 0"),
    (Cause.NO_MESSAGE, f"{_FOUND_TOO_MUCH} AND {{is_log_read}}"),
    (Cause.STATE, f"finding = '{Finding.STATE_MISMATCH}' AND {_STATE_IS_UNKNOWN}"),
    (Cause.STANDS, f"finding = '{Finding.STATE_MISMATCH}' AND order_state IN ({_STATES_THAT_STAND}) AND {_IS_TAKEN_BACK}"),
    (Cause.CREDITED, f"finding = '{Finding.STATE_MISMATCH}' AND order_state NOT IN ({_STATES_THAT_STAND}) AND {_KEEPS_CREDIT}"),
    (Cause.ROWS, f"finding = '{Finding.STATE_MISMATCH}'"),
    (Cause.FUTURE, f"finding = '{Finding.WRONG_TIME}' AND is_from_future"),
    (Cause.PAST, f"finding = '{Finding.WRONG_TIME}' AND is_from_past"),
    (Cause.TOO_EARLY, f"finding = '{Finding.WRONG_TIME}'"),
    (Cause.NO_MESSAGE, f"finding = '{Finding.REVERSAL_MISMATCH}' AND {_TAKEN_BACK} AND {_NAMES_CANCELLATION}"),
    (Cause.UNAUDITED, f"finding = '{Finding.REVERSAL_MISMATCH}' AND {_TAKEN_BACK} AND is_unaudited_reversal"),
    (Cause.UNASKED, f"finding = '{Finding.REVERSAL_MISMATCH}' AND {_TAKEN_BACK}"),
    (Cause.ITEMS, f"finding = '{Finding.ITEMS_MISMATCH}' AND item_cents = order_cents"),
    (Cause.BELOW_ZERO, f"finding = '{Finding.AMOUNT_MISMATCH}' AND order_cents < 0"),
    *_disagreement(Finding.AMOUNT_MISMATCH, "message_cents", "order_cents", "credit_cents"),
    *_disagreement(Finding.WRONG_CUSTOMER, "message_customer", "customer", "credited_customer"),
    (Cause.LEDGER, f"finding = '{Finding.POINTS_MISMATCH}'"),
    (Cause.OTHER_MESSAGE, f"finding = '{Finding.WRONG_TRANSACTION}' AND credit_transaction_id = transaction_id"),
    *_disagreement(Finding.WRONG_TRANSACTION, "message_transaction_id", "transaction_id", "credit_transaction_id"),
    (Cause.ONE_MESSAGE, f"finding = '{Finding.DOUBLE_CREDIT}' AND credit_transaction_id = last_credit_transaction_id"),
    (Cause.SEVERAL_MESSAGES, f"finding = '{Finding.DOUBLE_CREDIT}' AND credit_transaction_id <> last_credit_transaction_id"),
    (Cause.MARKER, f"finding = '{Finding.ROLLED_BACK_ORDER}'"),
    (Cause.BODY, f"finding = '{Finding.MESSAGE_MISMATCH}' AND (unreadable > 0 OR cancel_unreadable > 0)"),
    *((cause, f"finding = '{Finding.MESSAGE_MISMATCH}' AND {differs}") for cause, differs in _MESSAGE_DIFFERS.items()),
    (Cause.UNAUDITED, f"finding = '{Finding.MESSAGE_MISMATCH}' AND is_unaudited_message AND NOT ({_UNSENT})"),
    (Cause.PARKED, f"finding = '{Finding.MESSAGE_MISMATCH}' AND is_parked_beside_entry AND NOT ({_UNSENT})"),
    (Cause.NO_HALF, f"finding = '{Finding.MESSAGE_MISMATCH}'"),
    (Cause.VALUE, f"finding = '{Finding.UNKNOWN_ROW}' AND unknown_rows = 0"),
    (Cause.DISCARDED, f"finding = '{Finding.ROLLED_BACK}' AND is_discarded"),
    (Cause.REPAIRED, f"finding IN ('{Finding.MATCHED}', '{Finding.REVERSED}') AND (is_by_repair OR is_sent_by_repair)"),
    (Cause.DAMAGE, f"finding = '{Finding.DAMAGED_MESSAGE}'"),
)
"""The causes with their conditions. The first condition that holds determines the cause."""

_WITHOUT_CAUSE: Final = (
    Finding.MATCHED,
    Finding.ROLLED_BACK,
    Finding.REVERSED,
    Finding.ENDED,
    Finding.REVERSED_ORDER,
    Finding.REVERSAL_WITHOUT_CREDIT,
    Finding.REVERSAL_MISMATCH,
    Finding.DUPLICATE_ORDER,
    Finding.DUPLICATE_TRANSACTION,
    Finding.UNKNOWN_ROW,
    Finding.ORDER_WITHOUT_TRANSACTION,
    Finding.ITEMS_MISMATCH,
    Finding.CURRENCY_MISMATCH,
    Finding.DOUBLED_DELIVERY,
    Finding.LOG_GAP,
    Finding.UNCLASSIFIED,
)
"""The classes of findings without a cause."""

AT_STAKE: Final = f"""CASE
    WHEN claim = '{Finding.OVERDUE}' AND is_left_over AND NOT is_cancelled THEN NULL
    WHEN finding IN ('{Finding.MISSING_CREDIT}', '{Finding.OVERDUE}') THEN order_cents
    WHEN finding IN ('{Finding.ROLLED_BACK_ORDER}', '{Finding.REVERSED_ORDER}') THEN order_cents
    WHEN finding = '{Finding.MISSING_REVERSAL}' THEN credit_cents
    WHEN finding IN ('{Finding.REVERSAL_WITHOUT_CREDIT}', '{Finding.REVERSAL_MISMATCH}') THEN reversal_cents
    WHEN finding = '{Finding.CREDIT_WITHOUT_ORDER}' THEN credit_cents
    WHEN finding = '{Finding.STATE_MISMATCH}' THEN COALESCE(credit_cents, order_cents)
    WHEN finding = '{Finding.WRONG_TIME}' THEN COALESCE(credit_cents, order_cents)
    WHEN finding IN ('{Finding.DOUBLE_CREDIT}', '{Finding.AMOUNT_MISMATCH}') THEN ABS(credit_cents - {_wide("order_cents")})
    WHEN finding = '{Finding.WRONG_CUSTOMER}' THEN credit_cents
    WHEN finding = '{Finding.ITEMS_MISMATCH}' THEN ABS(item_cents - {_wide("order_cents")})
    WHEN finding = '{Finding.MESSAGE_MISMATCH}' AND (unreadable > 0 OR cancel_unreadable > 0) THEN order_cents
    WHEN finding = '{Finding.MESSAGE_MISMATCH}' THEN
        CASE WHEN message_cents < order_cents THEN {_wide("order_cents")} - {_wide("message_cents")}
            WHEN last_message_cents > order_cents THEN {_wide("last_message_cents")} - {_wide("order_cents")}
            WHEN cancel_cents < order_cents THEN {_wide("order_cents")} - {_wide("cancel_cents")}
            WHEN last_cancel_cents > order_cents THEN {_wide("last_cancel_cents")} - {_wide("order_cents")}
            ELSE 0 END END"""
"""The SQL expression for the affected amount of money in cents, as far as the class determines it."""


def steps(cut_off: CutOff, log_begins_ms: int | None, repairs: KnownRepairs | None = None) -> Mapping[str, Mapping[str, str]]:
    """Returns the SQL of the columns that the rules add to a history, in steps. Each step reads the columns of the earlier ones.

    `claim` is the first class whose condition holds, or `unclassified`. The rules in `CONTENT` also apply to ended orders and to
    orders in flight. See `facts` for the arguments.
    """
    excused = ", ".join(f"'{finding}'" for finding in (Finding.ENDED, Finding.IN_FLIGHT))
    return {
        "with_facts": facts(cut_off, log_begins_ms, repairs),
        "claimed": {"stage": STAGE, "claim": _first(CLASSES, f"'{Finding.UNCLASSIFIED}'")},
        "classified": {"finding": f"CASE WHEN claim IN ({excused}) THEN {_first(CONTENT, 'claim')} ELSE claim END"},
        "judged": {"cause": _cause(log_begins_ms), "at_stake_cents": AT_STAKE},
    }


def _cause(log_begins_ms: int | None) -> str:
    """Returns the SQL of a history's cause, which is NULL for classes without causes."""
    is_log_read = "FALSE" if log_begins_ms is None else "TRUE"
    causes = [(cause, condition.replace("{is_log_read}", is_log_read)) for cause, condition in CAUSES]
    needs_none = ", ".join(f"'{finding}'" for finding in _WITHOUT_CAUSE)
    return _first(causes, f"CASE WHEN finding IN ({needs_none}) THEN NULL ELSE '{Cause.UNKNOWN}' END")


def _first(named: tuple[tuple[str, str], ...] | list[tuple[Cause, str]], otherwise: str) -> str:
    whens = "\n".join(f"WHEN {condition} THEN '{name}'" for name, condition in named)
    return f"CASE {whens} ELSE {otherwise} END"
