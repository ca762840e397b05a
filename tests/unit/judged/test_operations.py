"""Tests that observations become the operations that they prove, and no others."""

from lab.judged.observations import ObservedCredits, ObservedPull
from lab.judged.operations import JudgedOperation, operations_of
from tests.judged_histories import QUEUE, ShortHistory, at


def operations(history: ShortHistory, model: str, of: str) -> list[JudgedOperation]:
    return [one for one in operations_of(history.observed, history.end) if (one.model, one.object) == (model, of)]


def test_a_final_response_completes_a_request() -> None:
    (placed,) = (one for one in operations(ShortHistory(), "order", "one") if one.name == "place")
    assert (placed.call_ns, placed.return_ns, placed.result, placed.order) == (0, 1, "done", "A")


def test_requests_without_a_final_response_are_one_operation_that_never_completes() -> None:
    placed = [one for one in operations(ShortHistory(), "order", "two") if one.name == "place"]
    assert [(one.call_ns, one.return_ns, one.result) for one in placed] == [(10, None, "unknown"), (14, 15, "done")]


def test_a_refusal_is_final() -> None:
    placed, end = operations(ShortHistory(), "order", "four")
    assert (placed.result, placed.return_ns, end.name, end.orders, end.count) == ("refused", 29, "end", (), 0)


def test_a_message_was_appended_between_the_first_request_and_the_first_pull_that_shows_it() -> None:
    appended = [one for one in operations(ShortHistory(), "queue", QUEUE) if one.name == "append"]
    assert [(one.order, one.offset, one.call_ns, one.return_ns) for one in appended] == [("A", 0, 0, 3), ("B", 1, 10, 17)]


def test_two_orders_at_one_offset_are_two_appends() -> None:
    history = ShortHistory()
    history.observed.append(ObservedPull(QUEUE, 1, at(34), ((1, "C"),)))
    appended = [one.order for one in operations(history, "queue", QUEUE) if one.name == "append" and one.offset == 1]
    assert appended == ["B", "C"]


def test_a_message_that_no_order_explains_was_appended_when_it_was_shown() -> None:
    history = ShortHistory()
    history.observed.append(ObservedPull(QUEUE, 2, at(34), ((2, "unheard-of"),)))
    (appended,) = (one for one in operations(history, "queue", QUEUE) if one.order == "unheard-of")
    assert (appended.call_ns, appended.return_ns) == (35, 35)
    assert {one.name for one in operations(history, "order", "unheard-of")} == {"deliver"}


def test_each_credit_was_entered_between_the_read_without_it_and_the_read_with_it() -> None:
    history = ShortHistory()
    history.observed.append(ObservedCredits("A", 1, at(30), 3, at(33)))
    entered = [one for one in operations(history, "order", "one") if one.name == "credit"]
    assert [(one.call_ns, one.return_ns) for one in entered] == [(3, 8), (30, 34), (30, 34)]
    assert [one.count for one in operations(history, "order", "one") if one.name == "read credits"] == [0, 1, 1, 3]


def test_each_pull_and_each_consumption_delivers_its_orders() -> None:
    delivered = [one.call_ns for one in operations(ShortHistory(), "order", "one") if one.name == "deliver"]
    assert sorted(delivered) == [2, 4, 6, 16, 30]


def test_the_end_says_how_often_an_order_is_in_the_queues_and_in_the_ledger() -> None:
    history = ShortHistory()
    history.end_with(queues={QUEUE: ("A", "B", "A")}, credits={"A": 2})
    ends = [operations(history, "order", key)[-1] for key in ("one", "two", "three")]
    assert [(one.name, len(one.orders), one.count) for one in ends] == [("end", 2, 2), ("end", 1, 0), ("end", 0, 0)]
    assert operations(history, "group", QUEUE)[-1].offset == 3
