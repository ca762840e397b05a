"""Tests the events that a test's journal keeps, and its output for one message."""

import pytest

from rocketmq_broker.testing.journal import EventKind, Journal, JournalEvent
from tests.passing_time import SteadyClock


def journal_of_two_orders() -> Journal:
    clock = SteadyClock()
    journal = Journal(clock)
    journal.note(EventKind.FAULT, "the disk is full")
    clock.now_s = 1.0
    journal.note(EventKind.HALF_MESSAGE, "shop sends a half message", ["id-1", "order-1", "customer-7"])
    journal.note(EventKind.HALF_MESSAGE, "shop sends a half message", ["id-2", "order-2"])
    clock.now_s = 61.5
    journal.note(EventKind.CHECK, "check-back", ["id-1"])
    journal.note(EventKind.FAULT, "2 connections are cut")
    clock.now_s = 3601.0
    journal.note(EventKind.DELIVERY, "credits gets the message", ["id-1", "order-1", "customer-7"])
    return journal


@pytest.mark.parametrize("word", ["id-1", "order-1", "customer-7"])
def test_a_message_has_one_story_by_whichever_of_its_names_it_is_asked_for(word: str) -> None:
    told = [event.text for event in journal_of_two_orders().of(word)]
    assert told == ["shop sends a half message", "check-back", "2 connections are cut", "credits gets the message"]


def test_what_concerned_everybody_before_a_message_came_is_no_part_of_its_story() -> None:
    assert "the disk is full" not in [event.text for event in journal_of_two_orders().of("order-1")]


def test_nobody_knows_a_name_that_never_came() -> None:
    assert journal_of_two_orders().of("order-3") == []


def test_a_line_has_minutes_and_seconds_and_the_key_that_people_know() -> None:
    journal = journal_of_two_orders()
    assert journal.format(journal.events).split("\n") == [
        "   0:00.000  the disk is full",
        "   0:01.000  shop sends a half message  [order-1 customer-7]",
        "   0:01.000  shop sends a half message  [order-2]",
        "   1:01.500  check-back  [order-1 customer-7]",
        "   1:01.500  2 connections are cut",
        "  60:01.000  credits gets the message  [order-1 customer-7]",
    ]


def test_a_message_without_a_key_is_called_by_its_id() -> None:
    journal = Journal(lambda: 0.0)
    journal.note(EventKind.MESSAGE, "shop sends a message", ["id-1", None])
    assert journal.format(journal.events) == "   0:00.000  shop sends a message  [id-1]"


def test_the_oldest_half_of_too_many_events_is_forgotten() -> None:
    journal = Journal(lambda: 0.0, max_events=10)
    for number in range(11):
        journal.note(EventKind.MESSAGE, str(number))
    assert [event.text for event in journal.events] == [str(number) for number in range(5, 11)]


def test_an_event_without_keys_concerns_all() -> None:
    journal = Journal(lambda: 2.0)
    journal.note(EventKind.BROKER, "the broker starts again", [None, ""])
    assert journal.events == [JournalEvent(2.0, EventKind.BROKER, "the broker starts again")]


def test_a_name_that_a_client_made_up_neither_controls_a_terminal_nor_fills_the_journal() -> None:
    journal = Journal(SteadyClock())
    journal.note(EventKind.MESSAGE, "p sends a message to \x1b[2J\nt")
    journal.note(EventKind.MESSAGE, "p sends a message to " + "t" * 100_000)
    first, second = journal.events
    assert first.text == "p sends a message to \\x1b[2J\\nt"
    assert len(second.text) < 3_000
