"""Defines the scenarios of the demo."""

from functools import partial
from typing import Final

from demo.books import ORDER_DATABASE
from demo.scenarios.context import PAYMENT_DEADLINE_S, ScenarioContext
from demo.scenarios.questions import NO_ORDER_NO_CREDIT, ONE_ORDER_ONE_CREDIT, entries, one_order, points
from demo.scenarios.scenario import Scenario
from rocketmq_broker.admin.timeline.event import BROKER, Arrow

_ABOVE_THE_LIMIT_CENTS: Final = 1_000_001
_AWAY_S: Final = 12.0
_FEW_CHECKS: Final = 2
_ROLLED_BACK_BEFORE: Final = 503
"""The order service's HTTP status if a check-back rolled the transaction back before the local transaction ran."""


def _local_transaction_fails(context: ScenarioContext) -> None:
    context.order(price_cents=_ABOVE_THE_LIMIT_CENTS)
    context.wait_until(context.is_decided, "the broker has the ROLLBACK")


def _dies_before_commit(context: ScenarioContext) -> None:
    deaths = context.deaths(context.system.order_service)
    context.order()
    context.wait_until(
        lambda: context.deaths(context.system.order_service) > deaths, "the order service has ended before it sent COMMIT"
    )
    context.wait_until(lambda: context.is_ready(context.system.order_service), "the order service runs again")
    context.wait_for_credit()


def _commit_is_lost(context: ScenarioContext) -> None:
    context.order()
    context.note("COMMIT was not sent: the half message is pending, and the credit service receives nothing")
    context.wait_for_credit()


def _rollback_is_lost(context: ScenarioContext) -> None:
    context.order(price_cents=_ABOVE_THE_LIMIT_CENTS)
    context.note("ROLLBACK was not sent: the half message is pending, although there is no order")
    context.wait_until(context.is_decided, "a check-back brought the ROLLBACK")


def _half_message_answer_is_lost(context: ScenarioContext) -> None:
    context.order()
    context.wait_for_credit()
    context.note("there are two half messages: the answer to the first was lost, so the order is in the second's transaction")
    context.wait_until(context.are_all_decided, "a check-back found no order in the first transaction: ROLLBACK")


def _check_back_comes_first(context: ScenarioContext) -> None:
    if context.order() == _ROLLED_BACK_BEFORE:
        context.note(
            "the late local transaction finds the marker ROLLED_BACK, and fails: it stores no order",
            Arrow("order_service", ORDER_DATABASE, "late local transaction", is_lost=True),
        )
    context.wait_until(context.is_decided, "the broker has the ROLLBACK, the answer to the check-back")


def _credit_database_away(context: ScenarioContext) -> None:
    with context.credit_database_away():
        context.order()
        context.pause(_AWAY_S)
    context.wait_for_credit()


def _redis_emptied(context: ScenarioContext) -> None:
    with context.kept_down(context.system.worker):
        context.empty_redis()
        context.order()
        context.wait_until(context.is_in_inbox, "the credit service has stored the message in its inbox")
        context.wait_until(lambda: context.keys_in_redis() > 0, "a task waits in Redis for a worker")
        context.empty_redis(is_fault=True)
    context.wait_for_credit()


def _delivered_twice(context: ScenarioContext) -> None:
    deaths = context.deaths(context.system.credit_service)
    context.order()
    context.wait_for_credit()
    context.wait_until(
        lambda: context.deaths(context.system.credit_service) > deaths,
        "the credit service has ended: its offset at the broker has not passed the message",
    )
    context.wait_until(lambda: context.is_ready(context.system.credit_service), "the credit service runs again")
    context.wait_until(
        context.is_acknowledged,
        "the message was delivered again: the credit service's offset has passed it now",
        Arrow(BROKER, "credit_service", "message, again"),
    )


def _broker_killed(context: ScenarioContext) -> None:
    context.order()
    context.kill(context.system.broker)
    context.wait_until(
        lambda: context.is_ready(context.system.broker), "the broker runs again, with the half message from its commit log"
    )
    context.wait_for_credit()


def _paid_later(context: ScenarioContext) -> None:
    context.order(payment="later")
    context.wait_until(lambda: context.check_backs() >= 2, "two check-backs were answered UNKNOWN: the order is not paid yet")
    context.pay()
    context.wait_for_credit()


def _never_paid(context: ScenarioContext) -> None:
    context.order(payment="later")
    context.note(f"nobody pays: the deadline is {PAYMENT_DEADLINE_S} s away")
    context.wait_until(context.is_decided, "a check-back after the deadline brought the ROLLBACK")
    context.wait_until(lambda: context.order_state() == "EXPIRED", "the order is EXPIRED")


def _out_of_stock(context: ScenarioContext) -> None:
    context.set_stock(0)
    context.order(article=context.run.customer)
    context.wait_for_credit()
    context.wait_until(
        lambda: context.order_state() == "CANCELLED",
        "the inventory service reported the shortage: the order is CANCELLED",
        Arrow("inventory_service", "order_service", "shortage"),
    )
    context.wait_until(lambda: context.entries() == 2, "the message of the cancellation took the credit back")


def _dead_letter(context: ScenarioContext) -> None:
    context.send_unreadable()
    for group in ("credit_service", "inventory_service"):
        context.wait_until(
            partial(context.has_dead_letter, group), f"the {group} cannot read the message: it is a dead letter of the group now"
        )


def _discarded(context: ScenarioContext) -> None:
    with context.check_backs_limited(_FEW_CHECKS):
        context.order(payment="later")
        context.wait_until(context.is_given_up, "the broker has given the half message up: it is in TRANS_CHECK_MAX_TIME_TOPIC")


SCENARIOS: Final = (
    Scenario(
        "local-transaction-fails",
        "The local transaction fails",
        "The order is above the limit of 10,000.00: the local transaction stores no order, and the order service sends ROLLBACK.",
        "The half message, then ROLLBACK at once: no check-back is needed.",
        "No order, no credit. No consumer ever saw the message.",
        NO_ORDER_NO_CREDIT,
        _local_transaction_fails,
    ),
    Scenario(
        "dies-before-commit",
        "The order service dies before COMMIT",
        "The process ends, as by kill -9, after the local commit and before COMMIT. It is started again.",
        "The customer gets no answer. The broker checks back as soon as the order service is online again, 2 s after the half "
        "message at the earliest. The order service reads its database and answers COMMIT.",
        "One order, one credit: a message that is sent after the local commit would have been lost here.",
        ONE_ORDER_ONE_CREDIT,
        _dies_before_commit,
        "exit-after-local-commit",
    ),
    Scenario(
        "commit-is-lost",
        "COMMIT is lost",
        "The order is stored and the customer has the answer 201, but the request with COMMIT never leaves the order service.",
        "The transaction is pending for 2 s, with the countdown to the check-back; then COMMIT is the answer.",
        "One order, one credit, a few seconds late.",
        ONE_ORDER_ONE_CREDIT,
        _commit_is_lost,
        "lose-commit",
    ),
    Scenario(
        "rollback-is-lost",
        "ROLLBACK is lost",
        "The order is refused, but the request with ROLLBACK never leaves the order service.",
        "The transaction is pending for 2 s. The check-back finds the marker ROLLED_BACK in the order database.",
        "No order, no credit.",
        NO_ORDER_NO_CREDIT,
        _rollback_is_lost,
        "lose-rollback",
    ),
    Scenario(
        "half-message-answer-is-lost",
        "The answer to the half message is lost",
        "The broker stores the half message, but its answer is lost, and the order service sends it again.",
        "Two half messages of one order. The local transaction runs for the second. A check-back finds no order under the "
        "first one's transaction, and writes the marker ROLLED_BACK.",
        "One order, one credit: each attempt to send is a transaction of its own, and only one has the order.",
        ONE_ORDER_ONE_CREDIT,
        _half_message_answer_is_lost,
        "lose-half-message-answer",
    ),
    Scenario(
        "check-back-comes-first",
        "A check-back comes while the local transaction still runs",
        "The local transaction begins 6 s late. The broker checks back meanwhile, and the order service finds nothing.",
        "The order service writes the marker ROLLED_BACK before it answers ROLLBACK. The late local transaction "
        "finds the marker and fails.",
        "No order, no credit: without the marker there would be an order whose message was rolled back.",
        NO_ORDER_NO_CREDIT,
        _check_back_comes_first,
        "hold-local-transaction",
    ),
    Scenario(
        "credit-database-away",
        "The credit database is away",
        "The credit database refuses writes for 12 s. An order is placed meanwhile.",
        "COMMIT comes at once. The credit service holds the message: it is neither acknowledged nor sent "
        "back, and no redelivery is used up.",
        "One order, one credit, as soon as the database is back.",
        ONE_ORDER_ONE_CREDIT,
        _credit_database_away,
    ),
    Scenario(
        "redis-emptied",
        "Redis is emptied",
        "The Celery worker is down. The task for it waits in Redis, and FLUSHALL deletes it. Then the worker is back.",
        "The message waits in the inbox of the credit database, and not in Redis. The credit service sends another task within a "
        "second.",
        "One order, one credit: Redis may lose everything.",
        ONE_ORDER_ONE_CREDIT,
        _redis_emptied,
    ),
    Scenario(
        "delivered-twice",
        "A message is delivered twice",
        "The credit service dies, as by kill -9, after it stored the message in its inbox and before it sent its offset to the "
        "broker.",
        "The broker delivers the message again. The inbox and the ledger have each message and each order once: the second "
        "delivery changes nothing.",
        "One order, one credit.",
        ONE_ORDER_ONE_CREDIT,
        _delivered_twice,
        "exit-before-acknowledgement",
    ),
    Scenario(
        "broker-killed",
        "The broker is killed",
        "COMMIT is lost, and the broker dies by kill -9 while the transaction is pending. It is started again.",
        "Recovery finds the half message in the commit log. The order service's client connects again, and answers the "
        "check-back.",
        "One order, one credit.",
        ONE_ORDER_ONE_CREDIT,
        _broker_killed,
        "lose-commit",
    ),
    Scenario(
        "paid-later",
        "Paid later",
        "The order is stored as AWAITING_PAYMENT, and the local transaction answers UNKNOWN. It is paid after some check-backs.",
        "The half message stays pending; each check-back is answered UNKNOWN, until one finds the payment and answers COMMIT.",
        "One order, PAID, and one credit.",
        (one_order("PAID"), *ONE_ORDER_ONE_CREDIT[1:]),
        _paid_later,
    ),
    Scenario(
        "never-paid",
        "Never paid",
        f"The order awaits its payment, and nobody pays within {PAYMENT_DEADLINE_S} s.",
        "Check-backs are answered UNKNOWN. The first one after the deadline makes the order EXPIRED and is answered ROLLBACK.",
        "One order, EXPIRED, and no credit: no consumer ever saw the message.",
        (one_order("EXPIRED"), entries(0), points(0)),
        _never_paid,
    ),
    Scenario(
        "out-of-stock",
        "Out of stock",
        "The order is for an article of which there are none. Credit service and inventory service both get the message.",
        "The credit comes at once. The inventory service sends a message of the shortage; the order service cancels the order "
        "by a second transaction, and the credit service takes the credit back.",
        "One order, CANCELLED; a credit and its reversal, which add up to 0 points.",
        (one_order("CANCELLED"), entries(2), points(0)),
        _out_of_stock,
    ),
    Scenario(
        "dead-letter",
        "A message becomes a dead letter",
        "Another program sends a message to the topic orders in a transaction of its own, and COMMITs it. "
        "The message is no order: it has no total_cents.",
        "Both consumers find that they cannot read it, and have the broker park it at once: no attempt can help. "
        "The exception is in the timeline, and on the page of the letter.",
        "No order, no credit, and one dead letter of each consumer group: the screen Dead letters has a button to retry "
        "and one to dismiss. Second opinion lists the message, which belongs to no order.",
        NO_ORDER_NO_CREDIT,
        _dead_letter,
    ),
    Scenario(
        "discarded",
        "The broker gives up a half message",
        f"The broker asks {_FEW_CHECKS} times at most, and the order awaits its payment longer than that.",
        "Each check-back is answered UNKNOWN. After the last one the broker discards the half message: "
        "a payment would come too late for it.",
        "One order that awaits its payment, and no credit. Nothing is lost: Resume on the screen Discarded lets the broker "
        "ask again, and the answer is ROLLBACK, because the deadline is over.",
        (one_order("AWAITING_PAYMENT"), entries(0), points(0)),
        _discarded,
    ),
)
