"""Tests the replay of scripted histories by Apache's check() and by this broker's rules."""

import pytest

from rocketmq_broker.admin.replay import HISTORIES, CheckHistory, Replay, ScriptedTransaction, replay
from rocketmq_broker.admin.timeline.folding import FoldedEvent


@pytest.fixture(params=HISTORIES)
def played(request: pytest.FixtureRequest) -> Replay:
    return replay(HISTORIES[request.param])


def test_a_history_is_played_alike_each_time(played: Replay) -> None:
    assert replay(played.history) == played


def test_the_events_of_both_brokers_are_in_order_and_within_the_history(played: Replay) -> None:
    times = [event.at_ms or 0 for event in played.events]
    assert times == sorted(times)
    assert times[-1] <= played.history.until_ms


def test_this_broker_stores_each_half_message_once_and_delivers_at_most_once(played: Replay) -> None:
    sent = len(played.history.transactions)
    assert played.ours.halves == sent
    assert played.ours.deliveries <= sent


def test_apaches_half_topic_grows_by_one_message_with_each_put_back(played: Replay) -> None:
    put_back = sum(len(row.apache.put_back) for row in played.rows)
    assert played.apache.halves == len(played.history.transactions) + put_back


def test_fifteen_check_backs_are_fifteen_more_half_messages_there_and_none_here() -> None:
    played = replay(HISTORIES["never-decided"])
    assert (played.apache.check_backs, played.apache.halves, played.apache.discarded) == (15, 16, 1)
    assert (played.ours.check_backs, played.ours.halves, played.ours.discarded) == (15, 1, 1)
    assert [row.apache.halves for row in played.rows] == [*range(2, 17), 16]
    assert [event.copies for event in played.events if isinstance(event, FoldedEvent)] == [0, 12]


def test_a_commit_after_a_check_back_delivers_twice_there_and_once_here() -> None:
    played = replay(HISTORIES["late-commit"])
    assert (played.apache.deliveries, played.ours.deliveries) == (2, 1)


def test_immunity_uses_up_the_checks_there_and_a_commit_after_the_discard_delivers() -> None:
    played = replay(HISTORIES["immunity"])
    assert (played.apache.check_backs, played.apache.discarded, played.apache.deliveries) == (0, 1, 1)
    assert (played.ours.check_backs, played.ours.discarded, played.ours.deliveries) == (0, 0, 1)


def test_the_two_offsets_of_three_calls_of_check() -> None:
    played = replay(HISTORIES["two-offsets"])
    assert [(row.apache.remove_map, row.apache.half_offset, row.apache.op_offset) for row in played.rows] == [
        ({0: 0, 2: 1}, 3, 2),
        ({3: 2}, 5, 3),
        ({5: 3}, 6, 4),
    ]


def test_a_second_decision_is_refused_here_and_taken_there() -> None:
    asked = ScriptedTransaction(name="order-1", sent_ms=0, decision="ROLLBACK", decided_ms=60_005, answers=("COMMIT",))
    played = replay(CheckHistory(title="", summary="", transactions=(asked,), until_ms=120_000))
    assert (played.apache.deliveries, played.apache.ops) == (1, 2)
    assert (played.ours.deliveries, played.ours.ops) == (1, 1)
    refused = "ROLLBACK of order-1: refused, the transaction is committed already; its first decision counts"
    assert refused in [event.what for event in played.events]
