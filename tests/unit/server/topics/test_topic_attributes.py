"""Tests changes to a topic's attributes."""

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
        ({}, "message.type=FIFO", "message.type=FIFO: use +NAME=VALUE to set an attribute, -NAME to remove it"),
        ({}, "+message.type", "+message.type: use +NAME=VALUE to set"),
        (FIFO, "-message.type=FIFO", "-message.type=FIFO: use +NAME=VALUE to set"),
        ({}, "+", "+: use +NAME=VALUE to set"),
        ({}, "+message.type=MIXED", "message.type=MIXED: value not supported; supported values: DELAY, FIFO, NORMAL, "),
        ({}, "+message.type=", "message.type=: value not supported"),
        ({}, "+queue.type=BatchCQ", "queue.type=BatchCQ: value not supported; supported values: SimpleCQ"),
        ({}, "+cleanup.policy=COMPACTION", "cleanup.policy=COMPACTION: value not supported"),
        ({}, "+reserve.time=5", "reserve.time=5: value not supported"),
        (
            {},
            "+colour=red",
            "colour: unknown attribute; known attributes: cleanup.policy, message.type, queue.type, reserve.time",
        ),
        ({}, "-colour", "colour: unknown attribute"),
        ({}, "-message.type", "message.type: attribute cannot be removed, because the topic does not have it"),
        ({}, "+queue.type=SimpleCQ", "queue.type: attribute can only be set when the topic is created"),
        ({"queue.type": "SimpleCQ"}, "-queue.type", "queue.type: attribute can only be set when the topic is created"),
        (FIFO, "+message.type=DELAY,-message.type", "message.type: attribute changed more than once"),
    ],
)
def test_an_impossible_change_is_refused_in_words(current: dict[str, str], changes: str, complaint: str) -> None:
    with pytest.raises(IllegalAttributes) as raised:
        changed_attributes(current, changes, is_new=False)
    assert str(raised.value).startswith(complaint)
