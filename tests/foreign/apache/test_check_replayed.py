"""Tests that the replay of check() agrees with Apache RocketMQ 4.9.7.

Apache's half topic grows with each check, and this broker's half topic does not.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import pytest

from rocketmq_broker.admin.replay import CheckHistory, ScriptedTransaction, replay
from rocketmq_broker.message import properties as props
from rocketmq_broker.message import sysflag, topics
from rocketmq_broker.message.record import Record
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers.pull import QueryConsumerOffsetRequestHeader
from rocketmq_broker.transaction.checking.check_policy import CheckPolicy
from tests.foreign.apache.records.stage import COMMIT, ROLLBACK, UNKNOWN, Stage, both_stages

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.java, pytest.mark.timeout(600)]

POLICY = CheckPolicy(transaction_timeout_ms=1000, check_interval_ms=4000, check_max=3)
HISTORY = CheckHistory(
    title="", summary="", policy=POLICY, until_ms=40_000, transactions=(
        ScriptedTransaction(name="never-decided", sent_ms=500),
        ScriptedTransaction(
            name="late-commit", sent_ms=16_500, decision="COMMIT", decided_ms=21_000, answers=("UNKNOWN", "COMMIT")
        ),
        ScriptedTransaction(name="rolled-back", sent_ms=25_000, decision="ROLLBACK", decided_ms=25_100),
        ScriptedTransaction(name="committed", sent_ms=25_200, decision="COMMIT", decided_ms=25_300),
    ),
)  # fmt: skip
"""Each transaction is over before the next one begins, so that the moment of a check() changes nothing."""
HALF = {props.TRANSACTION_PREPARED: "true", props.PRODUCER_GROUP: "producers"}
SETTLED_S = 60


class Stored(NamedTuple):
    """The messages, offsets and check-backs of a broker at the end of the history."""

    half_topic: list[tuple[str, int]]
    """The name and TRANSACTION_CHECK_TIMES of each message."""
    op_topic: list[int]
    deliveries: dict[str, int]
    offsets: tuple[int, int]
    asked: dict[str, list[tuple[int, int]]]
    """The number of each check-back, and the offset of the half message that it is about."""


async def _begin(stage: Stage, name: str) -> Record:
    await stage.send(name, HALF, sys_flag=sysflag.TRANSACTION_PREPARED_TYPE)
    return await stage.record(name, topics.HALF_TOPIC)


async def _play(stage: Stage, *, has_second_copies: bool) -> Stored:
    """Plays the history, one transaction after another. Returns what the broker has at the end.

    With `has_second_copies`, the broker sends one more check-back for a transaction after its COMMIT.
    """
    await stage.be_known()
    await _begin(stage, "never-decided")
    for number in range(POLICY.check_max):
        await stage.answer(await stage.check("never-decided", number), UNKNOWN)
    await stage.record("never-decided", topics.CHECK_MAX_TIME_TOPIC)
    late = await _begin(stage, "late-commit")
    await stage.answer(await stage.check("late-commit", 0), UNKNOWN)
    await stage.end(late, COMMIT)
    if has_second_copies:
        await stage.answer(await stage.check("late-commit", 1), COMMIT)
    await stage.end(await _begin(stage, "rolled-back"), ROLLBACK)
    await stage.end(await _begin(stage, "committed"), COMMIT)
    await stage.record("committed", "committed")
    expected = replay(HISTORY).rows[-1].apache
    deadline_s = time.monotonic() + SETTLED_S
    while has_second_copies and await _offsets(stage) != (expected.half_offset, expected.op_offset):
        assert time.monotonic() < deadline_s, f"offsets {await _offsets(stage)}, not {expected}"
        await asyncio.sleep(0.2)
    return _stored(stage, stage.records(), await _offsets(stage))


async def _offsets(stage: Stage) -> tuple[int, int]:
    """Returns the offsets of check() in the half topic and in the op topic."""
    found = []
    for topic in (topics.HALF_TOPIC, topics.OP_HALF_TOPIC):
        header = QueryConsumerOffsetRequestHeader(consumer_group=topics.TRANSACTION_CONSUMER_GROUP, topic=topic, queue_id=0)
        found.append(int((await stage.ask(RequestCode.QUERY_CONSUMER_OFFSET, header)).ext_fields()["offset"]))
    return found[0], found[1]


def _stored(stage: Stage, records: Iterable[Record], offsets: tuple[int, int]) -> Stored:
    halves, ops, deliveries = [], [], dict.fromkeys((one.name for one in HISTORY.transactions), 0)
    for record in records:
        topic, name = record.topic.decode(), record.get_property(props.KEYS) or ""
        if topic == topics.HALF_TOPIC:
            halves.append((name, int(record.get_property(props.TRANSACTION_CHECK_TIMES) or 0)))
        elif topic == topics.OP_HALF_TOPIC:
            ops.append(int(record.body))
        elif topic in deliveries:
            deliveries[topic] += 1
    asked = {
        name: [(_number(check.record), check.header.tran_state_table_offset) for check in checks]
        for name, checks in stage.checks.items()
    }
    return Stored(halves, ops, deliveries, offsets, asked)


def _number(record: Record) -> int:
    return int(record.get_property(props.TRANSACTION_CHECK_TIMES) or 0)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Stored]:
    """Returns what Apache's broker and this broker have after the history, keyed by broker."""
    with both_stages(
        tmp_path_factory.mktemp("replayed"),
        transaction_timeout_ms=POLICY.transaction_timeout_ms,
        check_interval_ms=POLICY.check_interval_ms,
        check_max=POLICY.check_max,
    ) as stages:
        return asyncio.run(_play_both(*stages))


async def _play_both(apache: Stage, ours: Stage) -> Mapping[str, Stored]:
    try:
        played = await asyncio.gather(_play(apache, has_second_copies=True), _play(ours, has_second_copies=False))
    finally:
        await asyncio.gather(apache.close(), ours.close())
    return dict(zip(("apache", "ours"), played, strict=True))


def test_apaches_half_topic_grows_by_one_message_with_each_check_as_the_replay_says(found: Mapping[str, Stored]) -> None:
    said = replay(HISTORY)
    assert found["apache"].half_topic == [(half.name, half.checks) for half in said.half_topic]
    assert len(found["apache"].half_topic) == len(HISTORY.transactions) + sum(map(len, found["apache"].asked.values()))


def test_apaches_op_topic_and_its_two_offsets_are_those_of_the_replay(found: Mapping[str, Stored]) -> None:
    said = replay(HISTORY)
    assert found["apache"].op_topic == said.op_topic
    assert found["apache"].offsets == (said.rows[-1].apache.half_offset, said.rows[-1].apache.op_offset)


def test_apache_asks_about_the_copies_that_the_replay_puts_back(found: Mapping[str, Stored]) -> None:
    said: dict[str, list[tuple[int, int]]] = {}
    for row in replay(HISTORY).rows:
        for one in row.apache.put_back:
            said.setdefault(one.name, []).append((one.checks, one.copy_offset))
    assert found["apache"].asked == said


def test_apache_delivers_as_often_as_the_replay_says(found: Mapping[str, Stored]) -> None:
    assert found["apache"].deliveries == {"never-decided": 0, "late-commit": 2, "rolled-back": 0, "committed": 1}
    assert sum(found["apache"].deliveries.values()) == replay(HISTORY).apache.deliveries


def test_our_half_topic_has_each_half_message_once_as_the_replay_says(found: Mapping[str, Stored]) -> None:
    said = replay(HISTORY).ours
    assert found["ours"].half_topic == [(transaction.name, 0) for transaction in HISTORY.transactions]
    assert (len(found["ours"].half_topic), len(found["ours"].op_topic)) == (said.halves, said.ops)
    assert found["ours"].deliveries == {"never-decided": 0, "late-commit": 1, "rolled-back": 0, "committed": 1}
    assert sum(map(len, found["ours"].asked.values())) == said.check_backs
