"""Tests of the rules for each class and cause, in SQL without Spark."""

import random
from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.judging import rules
from pipelines.judging.classes import CAUSES, CONSISTENT, MEANINGS, Cause, Finding
from pipelines.judging.history import COUNTS, EVENT_COLUMNS, KEY
from tests.unit.pipelines.judging.sqlite_judge import group, judge, judge_conditions
from tests.unit.pipelines.judging.stories import (
    ANCIENT,
    CUT_OFF,
    FAULTS,
    HEALTHY,
    OLD,
    YOUNG,
    Event,
    announced,
    credit,
    damage,
    delivered,
    half,
    healthy,
    order,
    placed,
)

STORIES = HEALTHY | FAULTS


def verdict(events: Iterable[Event], log_begins_ms: int | None = 0, markers: Iterable[str] = ()) -> tuple[object, object]:
    (row,) = judge(events, CUT_OFF, log_begins_ms, markers)
    return row["finding"], row["cause"]


@pytest.mark.parametrize("name", STORIES)
def test_a_story_has_its_class_and_cause_and_a_healthy_system_is_never_accused(name: str) -> None:
    story = STORIES[name]("a")
    assert verdict(story.events, markers=story.markers) == (story.finding, story.cause)
    assert (story.finding in CONSISTENT) == (name in HEALTHY)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(sorted(STORIES)), max_size=60), st.randoms(use_true_random=False))
def test_histories_with_injected_faults_are_reported_as_injected(names: list[str], chance: random.Random) -> None:
    """Each injected fault has the right class and cause in any order of the events, and there are no other findings."""
    told = {f"order-{number}": STORIES[name](f"order-{number}") for number, name in enumerate(names)}
    events: list[Event] = [event for story in told.values() for event in story.events]
    chance.shuffle(events)
    rows = judge(events, CUT_OFF, 0, [marker for story in told.values() for marker in story.markers])
    assert {row["order_id"]: (row["finding"], row["cause"]) for row in rows} == {
        order_id: (story.finding, story.cause) for order_id, story in told.items()
    }


EVENTS = [event for story in (tell("a") for tell in STORIES.values()) for event in story.events]


@settings(deadline=None, max_examples=300)
@given(st.lists(st.sampled_from(range(len(EVENTS))), min_size=1, max_size=8), st.booleans(), st.booleans())
def test_whatever_happened_has_one_class_and_is_consistent_only_if_nothing_is_wrong(
    indexes: list[int], is_marked: bool, has_store: bool
) -> None:
    """For any combination of events, a matched order has one order row and one credit with the same amount and customer."""
    events = [EVENTS[index] for index in indexes]
    for row in judge(events, CUT_OFF, 0 if has_store else None, ["T-a"] if is_marked else []):
        assert row["finding"] in set(Finding)
        if row["finding"] == Finding.MATCHED:
            assert (row["order_rows"], row["credit_rows"]) == (1, 1)
            assert row["order_cents"] == row["credit_cents"]
            assert row["customer"] == row["credited_customer"]
            assert row["damaged"] == 0
        if row["finding"] == Finding.ROLLED_BACK:
            assert (row["order_rows"], row["credit_rows"], row["deliveries"]) == (0, 0, 0)
        if row["finding"] == Finding.IN_FLIGHT:
            assert row["cause"] is not None


def test_what_no_rule_knows_is_unclassified_and_fails() -> None:
    """A history without any rows matches no rule. It is unclassified, which counts as a fault."""
    assert verdict([{"order_id": "a"}])[0] == Finding.UNCLASSIFIED
    assert Finding.UNCLASSIFIED not in CONSISTENT


def test_without_a_commit_log_nothing_is_said_of_messages() -> None:
    assert verdict([*placed("a"), credit("a")], None) == (Finding.MATCHED, None)
    assert verdict(placed("a"), None) == (Finding.MISSING_CREDIT, Cause.UNKNOWN)
    assert verdict([credit("a")], None) == (Finding.CREDIT_WITHOUT_ORDER, Cause.UNKNOWN)


def test_an_order_older_than_the_log_needs_no_message() -> None:
    events = [*placed("a", OLD - 5), credit("a")]
    assert verdict(events, OLD - 4) == (Finding.MATCHED, None)
    assert verdict(events, OLD - 5)[0] == Finding.ORDER_WITHOUT_MESSAGE


def test_an_order_of_unknown_age_is_judged() -> None:
    assert verdict([{**order("a"), "ordered_at_ms": None}])[0] == Finding.MISSING_CREDIT


ROLLED_BACK: Event = {"order_id": "a", "rolled_back_rows": 1, "decided_at_ms": OLD}


def test_the_second_attempt_of_an_order_counts() -> None:
    assert verdict([*healthy("a"), ROLLED_BACK]) == (Finding.MATCHED, None)


def test_an_order_whose_only_transaction_row_is_rolled_back_does_not_stand() -> None:
    assert verdict([order("a"), ROLLED_BACK]) == (Finding.ROLLED_BACK_ORDER, Cause.MARKER)


def test_doubles_are_judged_at_any_age() -> None:
    young = [*placed("a", YOUNG), half("a", YOUNG), delivered("a", YOUNG), delivered("a", YOUNG), credit("a", YOUNG)]
    assert verdict(young)[0] == Finding.DOUBLED_DELIVERY
    assert verdict([*young, credit("a", YOUNG)])[0] == Finding.DOUBLE_CREDIT


def test_what_is_young_is_not_overdue() -> None:
    waiting = [*placed("a", ANCIENT + 1), half("a", ANCIENT + 1, decided=False)]
    assert verdict(waiting)[0] == Finding.IN_FLIGHT


def test_a_stretch_without_names_is_damage_by_itself() -> None:
    rows = judge([damage(None), *healthy("a")], CUT_OFF, 0)
    assert Counter(row["finding"] for row in rows) == {Finding.DAMAGED_MESSAGE: 1, Finding.MATCHED: 1}


def test_money_at_stake_is_what_is_in_the_wrong_place() -> None:
    def at_stake(events: list[Event]) -> object:
        return judge(events, CUT_OFF, 0)[0]["at_stake_cents"]

    assert at_stake([*placed("a"), *announced("a")]) == 1250
    assert at_stake([credit("a")]) == 1250
    assert at_stake([*healthy("a"), credit("a")]) == 1250
    assert at_stake([*placed("a"), *announced("a"), credit("a", credit_cents=1)]) == 1249
    assert at_stake(healthy("a")) is None


def test_each_class_and_cause_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Finding)
    assert set(CAUSES) == set(Cause)


def test_each_class_has_a_story() -> None:
    of_orders = {finding for finding, _ in rules.CLASSES}
    assert {tell("a").finding for tell in STORIES.values()} == of_orders


NOT_NEEDED_FOR_A_MATCH = {
    "order_id": "the key",
    "discards": "discarded, and resumed since",
    "halves": "the half message may have expired with its segment, or moved forward; that there is none is another story",
    "commits": "a message that a repair sent is none",
    "half_at_ms": "as above",
    "last_half_at_ms": "as above",
    "last_decided_half_at_ms": "as above",
    "half_transaction_id": "as above; the delivered message has it as well",
    "last_credit_transaction_id": "of a second credit, which is found by its number",
    "last_credited_customer": "of a second entry, which is found by its number",
    "born_at_ms": "of a second delivery, which is found by its number",
    "last_born_at_ms": "as above",
    "delivered_at_ms": "when, and not what",
    "last_delivered_at_ms": "as above",
    "latest_at_ms": "as above; only the future is wrong",
    "decided_at_ms": "as above",
    "credited_at_ms": "as above",
    "consumed": "what is credited was consumed",
    "message_items": "a message of the first version names no items; see last_message_items",
}


def matched(**changed: object) -> Event:
    """Returns the grouped history of a healthy order, with some columns changed."""
    (row,) = group(healthy("a"))
    return {**row, **changed}


@pytest.mark.parametrize("column", sorted({name for name, value in matched().items() if value} - NOT_NEEDED_FOR_A_MATCH.keys()))
@pytest.mark.parametrize("is_gone", [True, False])
def test_nothing_that_a_match_needs_may_be_unsaid_or_said_otherwise(column: str, is_gone: bool) -> None:
    """A healthy history is no longer a match if any column becomes NULL or changes."""
    value = matched()[column]
    other = None if is_gone else value + 1 if isinstance(value, int) else f"{value}!"
    assert verdict([matched(**{column: other})])[0] != Finding.MATCHED


@settings(deadline=None, max_examples=80)
@given(st.lists(st.sampled_from(range(len(EVENTS))), min_size=1, max_size=6), st.sets(st.sampled_from(sorted(EVENT_COLUMNS))))
def test_each_condition_that_accuses_says_yes_or_no_whatever_is_unsaid(indexes: list[int], unsaid: set[str]) -> None:
    """Each condition that reports a fault is 0 or 1, even if columns are NULL.

    A condition that is NULL would skip its rule. Counts are never NULL, because `history.aggregates` replaces NULL by 0.
    """
    gone = unsaid - {*COUNTS, *KEY}
    events = [{name: value for name, value in EVENTS[index].items() if name not in gone} for index in indexes]
    for conditions in judge_conditions(events, CUT_OFF, 0):
        assert set(conditions) <= {0, 1}
