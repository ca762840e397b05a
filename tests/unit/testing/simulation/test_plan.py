"""Tests that a plan's text contains the whole plan, one event per line, and that errors describe the mistake."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.testing.simulation.plan import Plan, PlannedEvent, UnreadablePlan, read_plan

seconds = st.integers(0, 10_000_000).map(lambda ms: ms / 1000)
settings = st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text() | st.none()
values = st.recursive(settings, lambda inner: st.lists(inner, max_size=3), max_leaves=6)
events = st.builds(PlannedEvent, seconds, st.text(min_size=1), st.text(), seconds, st.dictionaries(st.text(), values, max_size=3))
plans = st.builds(
    lambda seed, shape, events: Plan(seed, shape, (), 10_000.0).with_events(events),
    st.integers(0, 2**63 - 1),
    st.dictionaries(st.text(), settings, max_size=4),
    st.lists(events, max_size=6),
)

KILL = '{"at_s": 4.0, "what": "process.kill", "where": "broker-a"}'


def text_with(events: str = "", ends_s: str = "60", shape: str = "{}", more: str = "") -> str:
    return f'{{"seed": 1, "shape": {shape}, "events": [{events}], "ends_s": {ends_s}{more}}}'


@given(plans)
def test_a_plan_comes_back_from_its_text(plan: Plan) -> None:
    assert read_plan(plan.written()) == plan


@given(plans)
def test_the_text_has_one_event_a_line(plan: Plan) -> None:
    lines = [line for line in plan.written().split("\n") if line.startswith('    {"at_s"')]
    assert [json.loads(line.removesuffix(","))["at_s"] for line in lines] == [event.at_s for event in plan.events]


@given(plans)
def test_the_text_does_not_depend_on_the_order_in_which_parameters_were_given(plan: Plan) -> None:
    turned = Plan(plan.seed, dict(reversed(plan.shape.items())), plan.events, plan.ends_s)
    assert turned.written() == plan.written()


def test_a_plan_written_by_hand_may_leave_out_what_an_event_does_not_need() -> None:
    assert read_plan(text_with(KILL)).events == (PlannedEvent(4.0, "process.kill", "broker-a", 0.0, {}),)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "truncated"),
        ("[]", "Expected `object`, got `array`"),
        ('{"seed": 1}', "missing required field `shape`"),
        (text_with(more=', "sead": 2'), "unknown field `sead`"),
        (text_with(KILL.replace("4.0", '"4"')), r"Expected `float`, got `str` - at `\$.events\[0\].at_s`"),
        (
            text_with(KILL.replace("4.0", "-4")),
            r"`at_s` must be 0 or more seconds, not -4.0 - at `\$.events\[0\]`",
        ),
        (text_with(KILL.replace("process.kill", "")), r"`what` must not be empty - at `\$.events\[0\]`"),
        (text_with(KILL.replace('"what"', '"waht"')), "unknown field `waht`"),
        (text_with(f"{KILL}, {KILL.replace('4.0', '3')}"), "must be ordered by time: 3 s follows 4 s"),
        (text_with(KILL, ends_s="3"), "events must begin before the end at 3 s, not at 4 s"),
        (text_with(shape='{"brokers": [1]}'), "got `array`"),
        (text_with(ends_s="1e999"), "out of range"),
        (b"\xff", "malformed"),
    ],
)
def test_a_text_that_is_no_plan_is_refused_with_the_mistake(text: str | bytes, told: str) -> None:
    with pytest.raises(UnreadablePlan, match=told):
        read_plan(text)


@pytest.mark.parametrize("seconds", [-0.001, float("nan"), float("inf")])
def test_no_event_has_a_time_that_is_none(seconds: float) -> None:
    with pytest.raises(ValueError, match="must be 0 or more seconds"):
        PlannedEvent(0.0, "process.freeze", "broker-a", for_s=seconds)


def test_no_parameter_holds_what_a_file_cannot() -> None:
    with pytest.raises(ValueError, match="JSON values only"):
        PlannedEvent(0.0, "process.kill", "broker-a", parameters={"when": {1, 2}})


def test_a_parameter_is_read_as_what_its_kind_needs() -> None:
    event = PlannedEvent(2.5, "process.kill_at_frame", "broker-a", parameters={"nth": 3, "when": "before", "rate": 1})
    assert (event.whole("nth"), event.text("when"), event.number("rate")) == (3, "before", 1.0)


@pytest.mark.parametrize(
    ("read", "told"),
    [
        (lambda event: event.whole("nth"), "process.kill at 2.5 s: parameter nth must be an integer, not nothing"),
        (lambda event: event.whole("sure"), "parameter sure must be an integer, not true"),
        (lambda event: event.number("when"), 'parameter when must be a number, not "now"'),
        (lambda event: event.text("sure"), "parameter sure must be a string, not true"),
    ],
)
def test_a_parameter_that_does_not_fit_is_named(read, told: str) -> None:
    with pytest.raises(UnreadablePlan, match=told):
        read(PlannedEvent(2.5, "process.kill", "broker-a", parameters={"when": "now", "sure": True}))


def test_an_event_is_told_in_one_line() -> None:
    event = PlannedEvent(2.5, "network.slow", "orders-1>broker-a", 10.0, {"delay_s": 0.2})
    assert event.described() == "2.5 s: network.slow orders-1>broker-a for 10 s (delay_s 0.2)"
