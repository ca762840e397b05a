"""Changes of a topic's attributes."""

from __future__ import annotations

import pytest

from rocketmq_broker.server.topics.topic_attributes import IllegalAttributes, changed_attributes

FIFO = {"message.type": "FIFO"}


@pytest.mark.parametrize(
    ("current", "changes", "after"),
    [
        ({}, "", {}),
        ({}, "+message.type=FIFO", FIFO),
        (FIFO, "", FIFO),
        (FIFO, "+message.type=DELAY", {"message.type": "DELAY"}),
        (FIFO, "-message.type", {}),
        (FIFO, "+message.type=FIFO", FIFO),
        ({"queue.type": "SimpleCQ"}, "+queue.type=SimpleCQ,+message.type=FIFO", {"queue.type": "SimpleCQ", **FIFO}),
        ({}, "+message.type=FIFO,", FIFO),
    ],
)
def test_attributes_are_set_kept_and_taken_away(current: dict[str, str], changes: str, after: dict[str, str]) -> None:
    before = dict(current)
    assert changed_attributes(current, changes, is_new=False) == after
    assert current == before


def test_a_topic_that_is_made_may_have_attributes_that_cannot_change() -> None:
    made = changed_attributes({}, "+queue.type=SimpleCQ,+cleanup.policy=DELETE", is_new=True)
    assert made == {"queue.type": "SimpleCQ", "cleanup.policy": "DELETE"}


@pytest.mark.parametrize(
    ("current", "changes", "complaint"),
    [
        ({}, "message.type=FIFO", "message.type=FIFO: +NAME=VALUE sets an attribute, -NAME takes one away"),
        ({}, "+message.type", "+message.type: +NAME=VALUE sets"),
        (FIFO, "-message.type=FIFO", "-message.type=FIFO: +NAME=VALUE sets"),
        ({}, "+", "+: +NAME=VALUE sets"),
        ({}, "+message.type=MIXED", "message.type=MIXED: not supported by this broker; it knows DELAY, FIFO, NORMAL, "),
        ({}, "+message.type=", "message.type=: not supported by this broker"),
        ({}, "+queue.type=BatchCQ", "queue.type=BatchCQ: not supported by this broker; it knows SimpleCQ"),
        ({}, "+cleanup.policy=COMPACTION", "cleanup.policy=COMPACTION: not supported by this broker"),
        ({}, "+reserve.time=5", "reserve.time=5: not supported by this broker"),
        ({}, "+colour=red", "colour: no attribute of topics; there are cleanup.policy, message.type, queue.type, reserve.time"),
        ({}, "-colour", "colour: no attribute of topics"),
        ({}, "-message.type", "message.type: the topic has no such attribute to take away"),
        ({}, "+queue.type=SimpleCQ", "queue.type: it can only be set when the topic is made"),
        ({"queue.type": "SimpleCQ"}, "-queue.type", "queue.type: it can only be set when the topic is made"),
        (FIFO, "+message.type=DELAY,-message.type", "message.type: it is changed twice"),
    ],
)
def test_an_impossible_change_is_refused_in_words(current: dict[str, str], changes: str, complaint: str) -> None:
    with pytest.raises(IllegalAttributes) as raised:
        changed_attributes(current, changes, is_new=False)
    assert str(raised.value).startswith(complaint)
