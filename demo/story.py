"""Chooses one order of a run, and shows the times of its half message, local transaction, decision, delivery and credit."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.table import Table
from rich.text import Text

from demo.books import CREDIT_DATABASE, ORDER_DATABASE, BookedCredit, BookedOrder
from demo.commit_log import Trace
from rocketmq_broker.admin.timeline.event import COMMIT_LOG, Event
from rocketmq_broker.message import properties
from rocketmq_broker.message.text.printable import printable


@dataclass(frozen=True, slots=True)
class Story:
    """An order with its transaction and its credit."""

    trace: Trace
    order: BookedOrder
    credit: BookedCredit


def choose_story(
    traces: Sequence[Trace], orders: dict[str, BookedOrder], credits: Sequence[BookedCredit], deaths_ms: Sequence[int] = ()
) -> Story | None:
    """Chooses a finished order whose COMMIT was lost when the order service died, and which was resolved by a check-back.

    If there is no such order, chooses another order that was resolved by a check-back, or any finished order. If there are
    several, chooses the order that was decided fastest. `deaths_ms` are the times at which the order service died.
    """
    credit_by_order = {credit.order_id: credit for credit in credits}
    finished = [
        Story(trace, orders[order_id], credit_by_order[order_id])
        for trace in traces
        if trace.committed
        and trace.op
        and (order_id := trace.half.get_property(properties.KEYS)) in credit_by_order
        and order_id in orders
    ]
    return min(
        finished,
        key=lambda story: (story.trace.checks == 0, _death(story, deaths_ms) is None, story.trace.pending_ms),
        default=None,
    )


def events_of(story: Story, deaths_ms: Sequence[int]) -> list[Event]:
    """Returns the order's events in causal order. `deaths_ms` are the times at which the order service died."""
    trace, order, credit = story.trace, story.order, story.credit
    assert trace.op is not None
    committed = trace.committed[0]
    half = f"half message stored at commit log offset {trace.half.commit_log_offset}, where no consumer sees it"
    decision = "COMMIT from the producer"
    if trace.checks:
        decision = f"check-back {trace.checks}: the order service finds the order in its database and answers COMMIT"
    events = [
        Event(trace.half.store_timestamp, half, COMMIT_LOG),
        Event(
            order.committed_at_ms,
            f"local transaction: order of {order.total_cents / 100:.2f} for {order.customer}",
            ORDER_DATABASE,
        ),
        Event(committed.store_timestamp, decision, COMMIT_LOG),
        Event(
            committed.store_timestamp, f"message visible in queue {committed.queue_id} at {committed.queue_offset}", COMMIT_LOG
        ),
        Event(trace.op.store_timestamp, "op message: the half message is decided", COMMIT_LOG),
        Event(credit.created_at_ms, f"delivered: {credit.points} credit points", CREDIT_DATABASE),
    ]
    death_ms = _death(story, deaths_ms)
    if trace.checks and death_ms is not None:
        events.insert(2, Event(death_ms, "order service found dead: COMMIT is not sent", "demo"))
    return events


def _death(story: Story, deaths_ms: Sequence[int]) -> int | None:
    """Returns the time at which the order service died between local transaction and decision, or None."""
    decided_ms = story.trace.committed[0].store_timestamp
    return min((at_ms for at_ms in deaths_ms if story.order.committed_at_ms <= at_ms <= decided_ms), default=None)


def story_table(story: Story, deaths_ms: Sequence[int]) -> Table:
    """Returns a table of the events, with the milliseconds since the half message."""
    title = printable(f"Order {story.order.order_id}, transaction {story.trace.transaction_id}")
    table = Table(title=Text(title), title_justify="left")
    table.add_column("time")
    table.add_column("ms", justify="right")
    table.add_column("what happened")
    table.add_column("on record in")
    for event in events_of(story, deaths_ms):
        assert event.at_ms is not None
        clock = datetime.fromtimestamp(event.at_ms / 1000).strftime("%H:%M:%S.%f")[:-3]
        table.add_row(clock, f"{event.at_ms - story.trace.half.store_timestamp:+,}", Text(printable(event.what)), event.on_record)
    return table
