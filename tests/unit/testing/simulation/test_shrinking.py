"""A failing plan is shrunk to a plan that still fails and from which no event can be removed."""

from collections.abc import Callable
from zlib import crc32

from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.testing.simulation.plan import Plan, PlannedEvent
from rocketmq_broker.testing.simulation.shrinking import ShrunkPlan, shrink, without_last_fault

ENOUGH = 20_000


def plan_of(*events: PlannedEvent, ends_s: float = 300.0, **shape: bool | int) -> Plan:
    return Plan(seed=1, shape=dict(shape), events=(), ends_s=ends_s).with_events(events)


def event(number: int, at_s: float = 0.0, for_s: float = 0.0, what: str = "order.place") -> PlannedEvent:
    return PlannedEvent(at_s, what, f"customer-{number % 3}", for_s, {"order": number})


def numbers(plan: Plan) -> frozenset[int]:
    return frozenset(event.whole("order") for event in plan.events)


def without_each(plan: Plan) -> list[Plan]:
    return [plan.with_events([*plan.events[:number], *plan.events[number + 1 :]]) for number in range(len(plan.events))]


class Counting:
    """A rule that counts its calls."""

    def __init__(self, rule: Callable[[Plan], bool]) -> None:
        self.rule = rule
        self.asked = 0

    def __call__(self, plan: Plan) -> bool:
        self.asked += 1
        return self.rule(plan)


plans = st.builds(
    lambda events: plan_of(*(event(number, *given) for number, given in enumerate(events))),
    st.lists(
        st.tuples(
            st.integers(0, 200_000).map(lambda ms: ms / 1000), st.sampled_from([0.0, 0.25, 7.5, 33.125]), st.sampled_from("abc")
        ),
        max_size=30,
    ),
)


@given(plans, st.data())
def test_what_is_left_are_the_events_that_the_failure_needs(plan: Plan, data: st.DataObject) -> None:
    needed = data.draw(st.frozensets(st.sampled_from(sorted(numbers(plan)) or [0]), max_size=6)) & numbers(plan)
    assert numbers(shrink(plan, lambda tried: needed <= numbers(tried), budget=ENOUGH).plan) == needed


@given(plans, st.integers(0, 2**32), st.integers(2, 5))
def test_whatever_the_rule_the_result_fails_and_no_event_can_be_spared(plan: Plan, salt: int, often: int) -> None:
    def rule(tried: Plan) -> bool:
        """Returns True for plans that fail. Parts of a failing plan may pass, and parts of these may fail again."""
        return numbers(tried) == numbers(plan) or sum((number + 1) * salt for number in numbers(tried)) % often == 1

    fails = Counting(rule)
    shrunk = shrink(plan, fails, budget=ENOUGH).plan
    assert rule(shrunk)
    assert fails.asked < ENOUGH
    assert not any(rule(smaller) for smaller in without_each(shrunk))


@given(plans, st.integers(0, 2**32), st.integers(1, 40))
def test_a_small_budget_is_kept_and_still_gives_a_plan_that_fails(plan: Plan, salt: int, budget: int) -> None:
    def rule(tried: Plan) -> bool:
        return numbers(tried) == numbers(plan) or crc32(f"{salt}{tried.written()}".encode()) % 2 == 0

    fails = Counting(rule)
    assert rule(shrink(plan, fails, budget=budget).plan)
    assert fails.asked <= budget


@given(plans, st.integers(0, 2**32))
def test_equal_plans_are_shrunk_alike(plan: Plan, salt: int) -> None:
    def rule(tried: Plan) -> bool:
        return numbers(tried) == numbers(plan) or sum(numbers(tried)) % 3 == salt % 3

    assert shrink(plan, rule, budget=200).plan.written() == shrink(plan, rule, budget=200).plan.written()


def test_a_fault_gets_as_short_as_the_failure_allows() -> None:
    plan = plan_of(event(1, at_s=12.345, for_s=37.482, what="process.freeze"))
    shrunk = shrink(plan, lambda tried: any(event.for_s >= 30 for event in tried.events), budget=ENOUGH).plan
    assert [event.for_s for event in shrunk.events] == [30.0]


def test_events_begin_as_early_and_as_round_as_the_failure_allows() -> None:
    plan = plan_of(event(1, at_s=77.777), event(2, at_s=155.512))

    def fails_with_some_time_between(tried: Plan) -> bool:
        return len(tried.events) == 2 and tried.events[1].at_s - tried.events[0].at_s >= 20

    shrunk = shrink(plan, fails_with_some_time_between, budget=ENOUGH).plan
    assert [event.at_s for event in shrunk.events] == [0.0, 30.0]
    assert shrunk.ends_s == 30.0


def test_the_shape_gets_the_simplest_settings_with_which_the_plan_still_fails() -> None:
    plan = plan_of(event(1), brokers=2, workers=4, has_inventory=True)
    shrunk = shrink(
        plan,
        lambda tried: tried.shape["workers"] == 4,
        budget=ENOUGH,
        simplest={"brokers": 1, "workers": 1, "has_inventory": False},
    ).plan
    assert shrunk.shape == {"brokers": 1, "workers": 4, "has_inventory": False}


def test_an_order_keeps_one_item_if_one_is_enough() -> None:
    placing = PlannedEvent(1.0, "order.place", "ana", parameters={"items": [["pen", 1, 100], ["ink", 2, 50]], "order": 1})
    shrunk = shrink(plan_of(placing), lambda tried: len(tried.events) == 1, budget=ENOUGH).plan
    assert shrunk.events[0].parameters["items"] == [["pen", 1, 100]]


def test_a_plan_that_holds_cannot_be_shrunk() -> None:
    assert shrink(plan_of(event(1)), lambda tried: False, budget=ENOUGH) == ShrunkPlan(plan_of(event(1)), 1, is_repeated=False)


def test_no_further_plan_is_tried_after_the_time_limit() -> None:
    plan = plan_of(event(1), event(2))
    assert shrink(plan, lambda tried: True, budget=ENOUGH, seconds=0) == ShrunkPlan(plan, 1, is_repeated=True)


def test_a_plan_without_its_last_fault_keeps_what_follows_it() -> None:
    plan = plan_of(event(1), event(2), event(3))
    without = without_last_fault(plan, lambda event: event.whole("order") < 3)
    assert without == plan_of(event(1), event(3))
    assert without_last_fault(plan, lambda event: False) is None
