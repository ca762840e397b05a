"""Counts the half messages of a run by outcome. Copies of a half message count once."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from demo.commit_log import Trace


class Ending(Enum):
    """The outcome of a transaction. The values are shown on the screen."""

    COMMITTED = "committed: the order service sent COMMIT"
    COMMITTED_AFTER_CHECK = "committed after a check-back: the first COMMIT did not arrive"
    REFUSED = "rolled back by the order service: the order was above the limit"
    CUT_SHORT = "rolled back, mostly by check-back: a kill came before the attempt stored an order, and the customer asked again"
    NOT_WRITTEN = "rolled back by the order service: its database had the order already, or did not accept it"
    DISCARDED = "discarded after the last check-back: `python -m rocketmq_broker.admin discarded` shows it"
    PENDING = "not decided yet"


class Loss(Enum):
    """The reason why a COMMIT was lost. The values are shown on the screen."""

    ORDER_SERVICE_DIED = "when the order service died"
    BROKER_KILLED = "when the broker was killed"
    UNEXPLAINED = "without a kill"


@dataclass(frozen=True, slots=True)
class Kills:
    """The times at which processes died or were killed, in milliseconds since the epoch."""

    order_service_ms: Sequence[int] = ()
    broker_ms: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Refusals:
    """The limit on an order's total, and the number of refused orders."""

    limit_cents: int
    answered: int


@dataclass(frozen=True, slots=True)
class CountedHalfMessages:
    """The number of half messages by outcome.

    Messages that were committed after a check-back are also counted by the reason for the lost COMMIT.
    """

    by_ending: Counter[Ending]
    by_loss: Counter[Loss] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        """The total number of half messages."""
        return self.by_ending.total()

    @property
    def committed(self) -> int:
        """The number of committed messages."""
        return self.by_ending[Ending.COMMITTED] + self.by_ending[Ending.COMMITTED_AFTER_CHECK]


def count_half_messages(
    traces: Iterable[Trace], rolled_back_ids: Collection[str], refusals: Refusals, kills: Kills
) -> CountedHalfMessages:
    """Counts the transactions by outcome. `rolled_back_ids` are the ids with a ROLLED_BACK row in the order database.

    The transaction of an order above the limit is rolled back if the service refused the order, or if a kill
    interrupted the attempt. The commit log and the database do not distinguish these two cases. Each customer receives
    one refusal, so further attempts above the limit must have been interrupted.
    """
    by_ending: Counter[Ending] = Counter()
    by_loss: Counter[Loss] = Counter()
    for trace in traces:
        ending = ending_of(trace, rolled_back_ids, refusals.limit_cents)
        by_ending[ending] += 1
        if ending is Ending.COMMITTED_AFTER_CHECK:
            by_loss[loss_of(trace, kills)] += 1
    cut_short = max(0, by_ending[Ending.REFUSED] - refusals.answered)
    by_ending[Ending.REFUSED] -= cut_short
    by_ending[Ending.CUT_SHORT] += cut_short
    return CountedHalfMessages(by_ending, by_loss)


def ending_of(trace: Trace, rolled_back_ids: Collection[str], limit_cents: int) -> Ending:
    """Returns the outcome of a transaction, according to the commit log and the order database."""
    if trace.committed:
        return Ending.COMMITTED_AFTER_CHECK if trace.checks else Ending.COMMITTED
    if trace.is_discarded:
        return Ending.DISCARDED
    if trace.op is None:
        return Ending.PENDING
    if _total_cents(trace) > limit_cents:
        return Ending.REFUSED
    return Ending.CUT_SHORT if trace.transaction_id in rolled_back_ids else Ending.NOT_WRITTEN


def loss_of(trace: Trace, kills: Kills) -> Loss:
    """Returns the reason why the COMMIT was lost.

    The reason is the first kill between the half message and the committed message, or UNEXPLAINED if there was no kill.
    """
    begun_ms, ended_ms = trace.half.store_timestamp, trace.committed[0].store_timestamp
    times = [(at_ms, Loss.ORDER_SERVICE_DIED) for at_ms in kills.order_service_ms]
    times += [(at_ms, Loss.BROKER_KILLED) for at_ms in kills.broker_ms]
    within = [(at_ms, loss) for at_ms, loss in times if begun_ms <= at_ms <= ended_ms]
    return min(within, key=lambda kill: kill[0], default=(0, Loss.UNEXPLAINED))[1]


def _total_cents(trace: Trace) -> int:
    """Returns the order's total in cents. Returns 0 if the message is not from the order service."""
    try:
        return int(json.loads(trace.half.body)["total_cents"])
    except (ValueError, KeyError, TypeError):
        return 0
