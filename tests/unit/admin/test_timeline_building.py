"""Tests that a timeline can be built from records alone.

Apache's brokers require this, because they keep no list of transactions.
"""

import pytest

from rocketmq_broker.admin.messages.finding import GroupConsumption
from rocketmq_broker.admin.timeline.building import build_timeline
from rocketmq_broker.admin.timeline.event import BROKER, CONSUMER_OFFSETS, NOT_ON_RECORD, Arrow, Event, Timeline
from rocketmq_broker.admin.timeline.evidence import GroupEvidence, TimelineEvidence
from rocketmq_broker.message import properties as props
from rocketmq_broker.message import sysflag, topics
from rocketmq_broker.message.record import Record, host_bytes
from rocketmq_broker.protocol.bodies.transaction_admin import CheckBackInfo, TransactionInfo
from tests.stored_records import stored

HALF_MS = 10_000


def record(
    topic: str, at_ms: int, *, checks: int | None = None, offset: int = 0, redelivery: int = 0, sys_flag: int = 0
) -> Record:
    named = {props.UNIQUE_KEY: "id-1", props.KEYS: "order-1", props.PRODUCER_GROUP: "shops", props.REAL_TOPIC: "orders"}
    if checks is not None:
        named[props.TRANSACTION_CHECK_TIMES] = str(checks)
    return stored(
        topic, b"paid", named, queue_id=2, queue_offset=7, commit_log_offset=offset, sys_flag=sys_flag, store_timestamp=at_ms,
        born_host=host_bytes("127.0.0.1", 50001), reconsume_times=redelivery,
    )  # fmt: skip


def half(at_ms: int = HALF_MS, *, checks: int | None = None, offset: int = 0) -> Record:
    return record(topics.HALF_TOPIC, at_ms, checks=checks, offset=offset)


def committed(at_ms: int, *, checks: int | None = None) -> Record:
    return record("orders", at_ms, checks=checks, sys_flag=sysflag.TRANSACTION_COMMIT_TYPE)


def evidence(*halves: Record, info: TransactionInfo | None = None, **found: object) -> TimelineEvidence:
    nothing: dict[str, object] = {"committed": [], "discarded": [], "groups": [], "consumptions": []}
    return TimelineEvidence(transaction_id="id-1", halves=list(halves), info=info, **{**nothing, **found})  # type: ignore[arg-type]


def sentences(timeline: Timeline) -> list[str]:
    return [event.what for event in timeline.events]


def test_half_messages_alone_do_not_say_whether_the_transaction_is_pending_or_rolled_back() -> None:
    told = build_timeline(evidence(half()))
    assert (told.transaction_id, told.keys, told.topic, told.producer_group) == ("id-1", ["order-1"], "orders", "shops")
    assert told.state == "pending or rolled back"
    assert sentences(told) == [
        "half message of shops at 127.0.0.1:50001 stored at commit log offset 0: no consumer sees it",
        "whether it is pending or rolled back: this broker does not report it",
    ]


def test_copies_tell_how_often_the_broker_asked_and_that_nobody_knows_whom() -> None:
    told = build_timeline(
        evidence(half(), half(HALF_MS + 6_000, checks=1, offset=500), half(HALF_MS + 66_000, checks=2, offset=900))
    )
    assert sentences(told) == [
        "half message of shops at 127.0.0.1:50001 stored at commit log offset 0: no consumer sees it",
        "no decision arrived before the first check-back: the local transaction was still running, or it answered UNKNOWN, "
        "or its decision was lost, or the producer had ended",
        "half message written again at 500, 1 check-back counted",
        "half message written again at 900, 2 check-backs counted",
        "2 check-backs: times, producers and answers",
        "whether it is pending or rolled back: this broker does not report it",
    ]
    lost = [event.arrow for event in told.events if event.arrow is not None and event.arrow.is_lost]
    assert [(arrow.sender, arrow.receiver) for arrow in lost] == [("shops", BROKER)]


def test_a_commit_after_a_check_back_does_not_say_which_client_sent_it() -> None:
    told = build_timeline(evidence(half(), committed=[committed(HALF_MS + 7_000, checks=1)]))
    assert told.state == "committed"
    who, what = "COMMIT, from its producer group after a check-back", "message visible in queue 2 at 7"
    assert sentences(told)[-1] == f"{who}; which client sent it is not on record: {what}"
    assert "1 check-back: times, producers and answers" in sentences(told)


def test_a_discarded_message_says_how_to_bring_it_back() -> None:
    told = build_timeline(evidence(half(), discarded=[record(topics.CHECK_MAX_TIME_TOPIC, HALF_MS + 900_000, checks=15)]))
    assert told.state == "discarded"
    assert sentences(told)[-1] == "discarded after 15 check-backs: rocketmq-admin resume resumes its check-backs"


def test_groups_say_what_they_consumed_what_came_again_and_what_became_a_dead_letter() -> None:
    again = record("%RETRY%credits", HALF_MS + 20_000, redelivery=1)
    dead = record("%DLQ%credits", HALF_MS + 40_000, redelivery=1)
    told = build_timeline(
        evidence(
            half(),
            committed=[committed(HALF_MS + 100)],
            consumptions=[GroupConsumption("credits", True), GroupConsumption("mails", False)],
            groups=[GroupEvidence("credits", [again], [dead])],
        )
    )
    assert sentences(told)[2:] == [
        "delivered to credits: its offset is after the message; the time is not on record",
        "redelivery 1 to credits: the attempt before failed",
        "dead letter of credits, after 1 attempt",
        "not consumed by mails yet: its offset at the broker is not after the message",
    ]
    assert [told.events[number].on_record for number in (2, 5)] == [CONSUMER_OFFSETS, CONSUMER_OFFSETS]


def test_a_group_whose_work_somebody_saw_has_the_message_though_its_offset_is_before_it() -> None:
    credited = Event(HALF_MS + 900, "25 points", "credit database", Arrow("credits", "credit database", "25 points"))
    consumptions = [GroupConsumption("credits", False)]
    told = build_timeline(evidence(half(), committed=[committed(HALF_MS + 100)], consumptions=consumptions), [credited])
    assert sentences(told)[2:] == [
        "delivered to credits, according to its next step; the time is not on record",
        "25 points",
        "credits has not acknowledged it yet: its offset at the broker is not after the message",
    ]
    assert told.events[2].arrow == Arrow(BROKER, "credits", "message")


def test_a_check_back_that_nobody_answered_is_told_as_lost() -> None:
    asked = CheckBackInfo(asked_ms=HALF_MS + 6_000, producer="127.0.0.1:50001", answered_ms=None, answer=None)
    info = TransactionInfo(state="pending", half_offset=0, producer_group="shops", topic="orders", checks=1, check_backs=[asked])
    told = build_timeline(evidence(half(), info=info))
    assert sentences(told)[2:] == [
        "check-back 1: the broker asks the producer at 127.0.0.1:50001",
        "the answer to check-back 1",
        "pending: no decision yet",
    ]
    assert told.events[3].on_record == NOT_ON_RECORD


def test_what_others_witnessed_stands_where_it_happened() -> None:
    stored = Event(HALF_MS + 50, "the order is in its database", "order database", None)
    credited = Event(HALF_MS + 9_000, "the credit is in its database", "credit database", None)
    told = build_timeline(evidence(half(), committed=[committed(HALF_MS + 100)]), [credited, stored])
    order = sentences(told)
    assert order.index("the order is in its database") == 1
    assert order[-1] == "the credit is in its database"


def test_a_guess_without_a_time_stays_behind_the_local_transaction_whatever_came_before_the_half_message() -> None:
    stored = Event(HALF_MS + 50, "the order is in its database", "order database", None)
    armed = Event(HALF_MS - 9_000, "the broker is started again", "scenario", None)
    order = sentences(build_timeline(evidence(half(), committed=[committed(HALF_MS + 7_000, checks=1)]), [stored, armed]))
    assert order[0] == "the broker is started again"
    assert order[2] == "the order is in its database"
    assert order[3].startswith("no decision arrived before the first check-back")


def test_a_loss_that_somebody_saw_is_told_instead_of_a_guess() -> None:
    lost = Event(HALF_MS + 50, "COMMIT does not leave", "failpoints", Arrow("shops", BROKER, "COMMIT", is_lost=True))
    told = build_timeline(evidence(half(), committed=[committed(HALF_MS + 7_000, checks=1)]), [lost])
    assert sentences(told)[1] == "COMMIT does not leave"
    assert not any("no decision arrived" in sentence for sentence in sentences(told))


@pytest.mark.parametrize(
    ("arrow", "is_guessed"),
    [
        (Arrow("shops", "shops", "held for 6 s"), False),
        (Arrow("shops", "shops", "the process ends"), False),
        (Arrow("shops", BROKER, "UNKNOWN"), False),
        (Arrow(BROKER, "shops", "answer", is_lost=True), False),
        (Arrow(BROKER, "shops", "check-back", is_lost=True), True),
    ],
)
def test_what_befell_the_producer_is_told_instead_of_a_guess_but_not_the_loss_of_a_check_back(
    arrow: Arrow, is_guessed: bool
) -> None:
    seen = Event(HALF_MS + 50, "why", "failpoints", arrow)
    told = build_timeline(evidence(half(), committed=[committed(HALF_MS + 7_000, checks=1)]), [seen])
    assert any("no decision arrived" in sentence for sentence in sentences(told)) is is_guessed


def test_what_came_after_a_rollback_stands_behind_it_though_its_check_backs_are_forgotten() -> None:
    info = TransactionInfo("rolled back", 0, checks=1, decided_ms=HALF_MS + 100)
    late = Event(HALF_MS + 200, "it finds the marker", "order database", Arrow("shops", "order database", "late", is_lost=True))
    order = sentences(build_timeline(evidence(half(), info=info), [late]))
    assert order[-1] == "it finds the marker"
    assert order[-2].startswith("ROLLBACK, from its producer group after a check-back")
    assert any("no decision arrived before the first check-back" in sentence for sentence in order[:-2])
