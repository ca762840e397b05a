"""The classes and causes of findings about an order, its messages and its credit."""

from enum import StrEnum
from typing import Final


class Finding(StrEnum):
    """The class of a finding. Each order, and each customer with a wrong balance, has exactly one class."""

    MATCHED = "matched"
    ROLLED_BACK = "rolled_back"
    REVERSED = "reversed"
    ENDED = "ended"
    IN_FLIGHT = "in_flight"
    OVERDUE = "overdue"

    MISSING_CREDIT = "missing_credit"
    CREDIT_WITHOUT_ORDER = "credit_without_order"
    DOUBLE_CREDIT = "double_credit"
    MISSING_REVERSAL = "missing_reversal"
    REVERSED_ORDER = "reversed_order"
    REVERSAL_WITHOUT_CREDIT = "reversal_without_credit"
    REVERSAL_MISMATCH = "reversal_mismatch"
    AMOUNT_MISMATCH = "amount_mismatch"
    POINTS_MISMATCH = "points_mismatch"
    WRONG_CUSTOMER = "wrong_customer"
    WRONG_TRANSACTION = "wrong_transaction"

    WRONG_TIME = "wrong_time"
    STATE_MISMATCH = "state_mismatch"
    DUPLICATE_ORDER = "duplicate_order"
    DUPLICATE_TRANSACTION = "duplicate_transaction"
    UNKNOWN_ROW = "unknown_row"
    ROLLED_BACK_ORDER = "rolled_back_order"
    ORDER_WITHOUT_TRANSACTION = "order_without_transaction"
    TRANSACTION_WITHOUT_ORDER = "transaction_without_order"
    ITEMS_MISMATCH = "items_mismatch"

    ORDER_WITHOUT_MESSAGE = "order_without_message"
    MESSAGE_WITHOUT_ORDER = "message_without_order"
    CURRENCY_MISMATCH = "currency_mismatch"
    MESSAGE_MISMATCH = "message_mismatch"
    DOUBLED_DELIVERY = "doubled_delivery"
    DAMAGED_MESSAGE = "damaged_message"
    LOG_GAP = "log_gap"
    NOT_JUDGED = "not_judged"

    UNREADABLE_VALUE = "unreadable_value"
    BALANCE_MISMATCH = "balance_mismatch"
    MISSING_BALANCE = "missing_balance"

    UNCLASSIFIED = "unclassified"


MEANINGS: Final = {
    Finding.MATCHED: "one order, one credit, all equal",
    Finding.ROLLED_BACK: "a transaction that was rolled back, without an order or a credit",
    Finding.REVERSED: "a credit and its reversal; the order was cancelled, or never existed",
    Finding.ENDED: "an order that expired or was cancelled before its message was sent, without a credit",
    Finding.IN_FLIGHT: "still on its way, or younger than the grace period: not judged",
    Finding.OVERDUE: "still on its way for longer than --overdue-seconds",
    Finding.MISSING_CREDIT: "an order without a credit, although its transaction is COMMITTED",
    Finding.CREDIT_WITHOUT_ORDER: "a credit whose order does not exist",
    Finding.DOUBLE_CREDIT: "an order that was credited more than once",
    Finding.MISSING_REVERSAL: "a cancelled order whose credit was not reversed",
    Finding.REVERSED_ORDER: "the credit of an order that was not cancelled was reversed",
    Finding.REVERSAL_WITHOUT_CREDIT: "a reversal of a credit that does not exist",
    Finding.REVERSAL_MISMATCH: "a reversal that differs from its credit, or without a cancellation",
    Finding.AMOUNT_MISMATCH: "credit and order have different amounts, or a negative one",
    Finding.POINTS_MISMATCH: "not one point for each full unit of currency",
    Finding.WRONG_CUSTOMER: "the credit went to another customer",
    Finding.WRONG_TRANSACTION: "the credit's transaction or message id is not the order's, or is missing",
    Finding.WRONG_TIME: "an impossible time: too far in the future, decades ago, or before an event that it follows",
    Finding.STATE_MISMATCH: "the order's state contradicts its transactions, times, messages or credit",
    Finding.DUPLICATE_ORDER: "two rows with one order id",
    Finding.DUPLICATE_TRANSACTION: "an order with two COMMITTED or PENDING transactions of one kind",
    Finding.UNKNOWN_ROW: "a row with a kind, a state or a value that no service writes",
    Finding.ROLLED_BACK_ORDER: "an order row although its transaction, or its cancellation, is ROLLED_BACK",
    Finding.ORDER_WITHOUT_TRANSACTION: "an order row without the transaction row that was written with it",
    Finding.TRANSACTION_WITHOUT_ORDER: "a committed transaction row without the order row that was written with it",
    Finding.ITEMS_MISMATCH: "the items do not add up to the order's total, or differ from the message's",
    Finding.ORDER_WITHOUT_MESSAGE: "a credited order whose message was not delivered",
    Finding.MESSAGE_WITHOUT_ORDER: "a delivered message whose order does not exist",
    Finding.CURRENCY_MISMATCH: "message and order have different currencies",
    Finding.MESSAGE_MISMATCH: "a message that differs from the order, is unreadable, or was not sent in a transaction",
    Finding.DOUBLED_DELIVERY: "a half message that was delivered more than once",
    Finding.DAMAGED_MESSAGE: "a record of the commit log that can no longer be read",
    Finding.LOG_GAP: "a missing part of the commit log: a file, or the end of one",
    Finding.NOT_JUDGED: "an order whose message may have been in a gap or a damaged part of the commit log",
    Finding.UNREADABLE_VALUE: "a value that does not have its column's type, listed with table and row",
    Finding.BALANCE_MISMATCH: "a balance that is not the sum of the customer's credits",
    Finding.MISSING_BALANCE: "a customer with credits and without a balance",
    Finding.UNCLASSIFIED: "no rule matches: a mistake in the rules, or rows that no service writes",
}

CONSISTENT: Final = frozenset({Finding.MATCHED, Finding.ROLLED_BACK, Finding.REVERSED, Finding.ENDED, Finding.IN_FLIGHT})
"""The classes that occur in a healthy system."""

NEEDS_STORE: Final = frozenset(
    {
        Finding.ORDER_WITHOUT_MESSAGE,
        Finding.MESSAGE_WITHOUT_ORDER,
        Finding.CURRENCY_MISMATCH,
        Finding.MESSAGE_MISMATCH,
        Finding.DOUBLED_DELIVERY,
        Finding.DAMAGED_MESSAGE,
        Finding.LOG_GAP,
        Finding.NOT_JUDGED,
        Finding.OVERDUE,
    }
)
"""The classes that can be found only with the commit log, unless the inbox or a deadline reveals them."""


class Cause(StrEnum):
    """The cause of a finding, as far as the data shows it."""

    YOUNG = "young"
    PENDING = "pending"
    AWAITING_PAYMENT = "awaiting_payment"
    CANCELLING = "cancelling"
    WAITING = "waiting"
    PARKED = "parked"
    DISMISSED = "dismissed"
    NOT_CONSUMED = "not_consumed"
    REDELIVERING = "redelivering"
    NO_MESSAGE = "no_message"
    NO_TRANSACTION = "no_transaction"
    ROLLED_BACK = "rolled_back"
    DISCARDED = "discarded"
    DEAD_LETTER = "dead_letter"
    CONSUMED = "consumed"
    DELIVERED = "delivered"
    DAMAGE = "damage"
    ORDER_LOST = "order_lost"
    ONE_MESSAGE = "one_message"
    SEVERAL_MESSAGES = "several_messages"
    LEDGER = "ledger"
    ORDER_OR_MESSAGE = "order_or_message"
    MESSAGE = "message"
    CREDITED = "credited"
    STANDS = "stands"
    STATE = "state"
    ROWS = "rows"
    FUTURE = "future"
    PAST = "past"
    TOO_EARLY = "too_early"
    BELOW_ZERO = "below_zero"
    ITEMS = "items"
    UNASKED = "unasked"
    OTHER_MESSAGE = "other_message"
    BODY = "body"
    TIME = "time"
    AMOUNT = "amount"
    CUSTOMER = "customer"
    NAME = "name"
    TRANSACTION = "transaction"
    NO_HALF = "no_half"
    UNAUDITED = "unaudited"
    REPAIRED = "repaired"
    VALUE = "value"
    MARKER = "marker"
    LEDGER_SUM = "ledger_sum"
    UNKNOWN = "unknown"


CAUSES: Final = {
    Cause.YOUNG: "younger than the grace period",
    Cause.PENDING: "its half message waits for a decision",
    Cause.AWAITING_PAYMENT: "it is not paid yet, and its deadline has not passed",
    Cause.CANCELLING: "it was cancelled or refused, and the reversal is on its way",
    Cause.WAITING: "the credit service stored the message in its inbox, and has not processed it yet",
    Cause.PARKED: "the credit service parked the message in its inbox; run python -m credit_service inbox retry",
    Cause.DISMISSED: "a person dismissed the message in the credit service's inbox",
    Cause.NOT_CONSUMED: "the message is delivered, but the consumer group has not consumed it yet",
    Cause.REDELIVERING: "the consumer group failed on it, and it will be redelivered",
    Cause.NO_MESSAGE: "the commit log has no message of it",
    Cause.NO_TRANSACTION: "it has no transaction row",
    Cause.ROLLED_BACK: "its transaction was rolled back: by its row, or by a half message that was decided and not delivered",
    Cause.DISCARDED: "the broker gave up check-backs; run python -m rocketmq_broker.admin resume",
    Cause.DEAD_LETTER: "the message is a dead letter; run python -m rocketmq_broker.admin dead-letters retry",
    Cause.CONSUMED: "the consumer group acknowledged the message, and the credit is not in the ledger",
    Cause.DELIVERED: "the message was delivered; it is unknown whether it was consumed",
    Cause.DAMAGE: "its record in the commit log is damaged",
    Cause.ORDER_LOST: "its transaction was committed, and the order row is gone",
    Cause.ONE_MESSAGE: "both credits name one transaction: the ledger lost its unique key",
    Cause.SEVERAL_MESSAGES: "the credits name different transactions",
    Cause.LEDGER: "message and order agree, the ledger differs",
    Cause.ORDER_OR_MESSAGE: "message and ledger agree, the order differs: it was changed later, or the message was wrong",
    Cause.MESSAGE: "the message agrees with neither",
    Cause.CREDITED: "it awaits payment, has expired or was cancelled, but is credited",
    Cause.STANDS: "its state is not CANCELLED, but a transaction or a message cancelled it",
    Cause.STATE: "no service writes its state",
    Cause.ROWS: "its state, times, transactions and messages contradict each other",
    Cause.FUTURE: "a time is in the future",
    Cause.PAST: "a time is more than 30 years ago; probably seconds were written instead of milliseconds",
    Cause.TOO_EARLY: "an event is earlier, by more than the grace period, than the one that it follows",
    Cause.BELOW_ZERO: "an amount below zero",
    Cause.ITEMS: "the message has other items or quantities than the order; the inventory service ships by the message",
    Cause.UNASKED: "the reversal belongs to neither a cancellation nor a repair",
    Cause.OTHER_MESSAGE: "the credit's message id is of another message",
    Cause.BODY: "the body is not a JSON object with all fields of an order's message",
    Cause.TIME: "the message has another time of the order",
    Cause.AMOUNT: "the amounts differ",
    Cause.CUSTOMER: "the customers differ",
    Cause.NAME: "the message's key and its body have different order ids",
    Cause.TRANSACTION: "the transaction ids differ",
    Cause.NO_HALF: "its message has no half message in the log, so no transaction sent it",
    Cause.UNAUDITED: "only a repair writes such an entry or sends such a message, but it is not in the audit files",
    Cause.REPAIRED: "a repair reversed the credit, or sent the message",
    Cause.VALUE: "a row has a currency, an amount, a quantity or a name that no service writes",
    Cause.MARKER: "the transaction row is ROLLED_BACK",
    Cause.LEDGER_SUM: "the balance is not the sum of the ledger's entries",
    Cause.UNKNOWN: "the available data does not show the cause",
}
