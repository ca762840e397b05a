"""Long series of similar check-backs are folded into one event; all other events stay the same."""

from rocketmq_broker.admin.timeline.event import Arrow, Event
from rocketmq_broker.admin.timeline.folding import FoldedEvent, folded

HALF = Event(0, "half message", "commit log", Arrow("shops", "broker", "half message"))


def check_back(number: int, answer: str | None = "UNKNOWN", producer: str = "10.0.0.1:5000") -> list[Event]:
    asked_ms = 1000 + 2000 * number
    what = f"check-back {number}: the broker asks the producer at {producer}"
    asked = Event(asked_ms, what, "broker's memory", Arrow("broker", "shops", f"check-back {number}"))
    if answer is None:
        return [asked, Event(None, "the answer", "not on record", Arrow("shops", "broker", "no answer", is_lost=True))]
    return [asked, Event(asked_ms + 5, f"answers {answer}", "broker's memory", Arrow("shops", "broker", answer))]


def copy(number: int) -> Event:
    return Event(
        1010 + 2000 * number, "half message written again", "commit log", Arrow("broker", "broker", "half message written again")
    )


def test_two_hundred_check_backs_are_a_few_events_with_count_pace_and_span() -> None:
    events = [HALF, *(event for number in range(1, 201) for event in check_back(number)), *check_back(201, "COMMIT")]
    kept = folded(events)
    assert len(kept) == 1 + 2 * 2 + 1 + 2 + 2
    (fold,) = [event for event in kept if isinstance(event, FoldedEvent)]
    assert fold.what.startswith(
        "check-back 3 to 199, every 2 s, answered UNKNOWN, for 6 m 32 s: the broker asks the producer at 10.0.0.1"
    )
    assert (fold.count, fold.at_ms, fold.until_ms) == (197, 7000, 399_005)
    assert fold.arrow == Arrow("broker", "shops", "check-back 3 to 199")
    assert kept[-2:] == events[-2:]


def test_few_check_backs_stay() -> None:
    events = [HALF, *(event for number in range(1, 6) for event in check_back(number))]
    assert folded(events) == events


def test_another_answer_or_another_producer_begins_another_row() -> None:
    events = [event for number in range(1, 11) for event in check_back(number)]
    events += [event for number in range(11, 21) for event in check_back(number, None)]
    events += [event for number in range(21, 31) for event in check_back(number, producer="10.0.0.2:6000")]
    folds = [event.what for event in folded(events) if isinstance(event, FoldedEvent)]
    assert [fold.partition(":")[0] for fold in folds] == [
        "check-back 3 to 9, every 2 s, answered UNKNOWN, for 12 s",
        "check-back 13 to 19, every 2 s, without an answer, for 12 s",
        "check-back 23 to 29, every 2 s, answered UNKNOWN, for 12 s",
    ]


def test_a_producer_that_connects_again_begins_no_row() -> None:
    events = [event for number in range(1, 41) for event in check_back(number, producer=f"10.0.0.1:{5000 + number // 5}")]
    (fold,) = [event for event in folded(events) if isinstance(event, FoldedEvent)]
    assert fold.what == "check-back 3 to 39, every 2 s, answered UNKNOWN, for 1 m 12 s: the broker asks the producer at 10.0.0.1"


def test_copies_of_the_half_message_are_folded_with_the_check_backs_that_they_count() -> None:
    events = [event for number in range(1, 11) for event in (*check_back(number), *([copy(number)] if number % 2 else []))]
    (fold,) = [event for event in folded(events) if isinstance(event, FoldedEvent)]
    assert (fold.count, fold.copies) == (7, 4)


def test_an_event_of_another_kind_ends_a_row_and_stays() -> None:
    paid = Event(12_500, "the order is paid", "order database", Arrow("order_service", "order database", "PAID"))
    events = [event for number in range(1, 6) for event in check_back(number)]
    events += [paid, *(event for number in range(6, 11) for event in check_back(number))]
    assert folded(events) == events
