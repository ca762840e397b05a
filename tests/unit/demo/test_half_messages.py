"""Tests how half messages are sorted by outcome, and the demo's text about them."""

from collections import Counter

import pytest
from rich.console import Console

from demo.commit_log import Trace
from demo.half_messages import CountedHalfMessages, Ending, Kills, Loss, Refusals, count_half_messages, ending_of, loss_of
from demo.main_job.report import deaths_report, half_messages_table, losses_report
from tests.unit.demo.records import trace_of, undelivered

LIMIT = 1_000


def discarded() -> Trace:
    trace = undelivered("discarded")
    trace.is_discarded = True
    return trace


@pytest.mark.parametrize(
    ("trace", "ending"),
    [
        (trace_of("a"), Ending.COMMITTED),
        (trace_of("a", checks=1), Ending.COMMITTED_AFTER_CHECK),
        (undelivered("x", total_cents=1_001), Ending.REFUSED),
        (undelivered("marked"), Ending.CUT_SHORT),
        (undelivered("marked", body=b"of another program"), Ending.CUT_SHORT),
        (undelivered("unmarked"), Ending.NOT_WRITTEN),
        (undelivered("x", is_decided=False), Ending.PENDING),
        (discarded(), Ending.DISCARDED),
    ],
)
def test_each_transaction_has_one_ending(trace: Trace, ending: Ending) -> None:
    assert ending_of(trace, {"marked"}, LIMIT) is ending


@pytest.mark.parametrize(
    ("kills", "loss"),
    [
        (Kills(order_service_ms=[1_500]), Loss.ORDER_SERVICE_DIED),
        (Kills(broker_ms=[4_000]), Loss.BROKER_KILLED),
        (Kills(order_service_ms=[3_000], broker_ms=[2_000]), Loss.BROKER_KILLED),
        (Kills(order_service_ms=[999], broker_ms=[4_001]), Loss.UNEXPLAINED),
        (Kills(), Loss.UNEXPLAINED),
    ],
)
def test_a_lost_commit_goes_to_the_first_kill_while_it_was_under_way(kills: Kills, loss: Loss) -> None:
    assert loss_of(trace_of("a", checks=1), kills) is loss


def test_the_counts_add_up_to_all_half_messages() -> None:
    traces = [
        trace_of("a"),
        trace_of("b", checks=2),
        *(undelivered(f"above-{number}", total_cents=5_000) for number in range(3)),
        undelivered("marked"),
    ]
    counted = count_half_messages(traces, {"marked"}, Refusals(LIMIT, answered=2), Kills(broker_ms=[2_000]))
    assert counted.count == len(traces)
    assert counted.committed == 2
    assert dict(counted.by_ending) == {
        Ending.COMMITTED: 1,
        Ending.COMMITTED_AFTER_CHECK: 1,
        Ending.REFUSED: 2,  # as often as a customer was told so; the third attempt was cut short
        Ending.CUT_SHORT: 2,
    }
    assert counted.by_loss == {Loss.BROKER_KILLED: 1}


def half_messages(**by_loss: int) -> CountedHalfMessages:
    losses = Counter({Loss[name]: count for name, count in by_loss.items()})
    endings = Counter({Ending.COMMITTED: 90, Ending.COMMITTED_AFTER_CHECK: losses.total(), Ending.CUT_SHORT: 5})
    return CountedHalfMessages(endings, losses)


def test_the_table_shows_endings_that_occurred_and_their_sum() -> None:
    console = Console(width=120)
    with console.capture() as shown:
        console.print(half_messages_table(half_messages(BROKER_KILLED=10)))
    rows = [line.split()[1] for line in shown.get().splitlines() if line.startswith("│") and line.split()[1].isdecimal()]
    assert rows == ["90", "10", "5", "105"]


def test_lost_commits_are_told_with_what_they_would_have_meant() -> None:
    assert losses_report(half_messages(ORDER_SERVICE_DIED=7, BROKER_KILLED=3)) == (
        "10 of 100 COMMITs were lost on the way: 7 when the order service died, 3 when the broker was killed. "
        "A message sent after the local commit would have been lost in those 7 cases, unnoticed. "
        "In those 3 cases such a sender would have had to store the message until the broker was back. "
        "A check-back found each of these orders in the order database, and the broker committed its half message."
    )


def test_without_kills_nothing_is_claimed_to_be_lost() -> None:
    told = losses_report(half_messages(UNEXPLAINED=1))
    assert told is not None
    assert told.startswith("1 of 91 COMMITs arrived after the check-back, or were lost without a kill.")
    assert losses_report(half_messages()) is None


def test_deaths_are_counted_in_words() -> None:
    assert deaths_report(1, 60).startswith("The order service died once between local commit and COMMIT")
    assert deaths_report(6, 60).endswith("the demo makes it die at every 60th local commit.")
