"""Defines the paths of messages through a broker. Each is run on Apache's broker and on this project's broker."""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from rocketmq_broker.message import properties as props
from rocketmq_broker.message import sysflag, topics
from rocketmq_broker.protocol.codes import RequestCode
from tests.foreign.apache.records.stage import CLIENT_ID, COMMIT, LONG_AGO_MS, ROLLBACK, UNKNOWN, Stage, batched, encoded

CHECK_MAX = 2
CHECK_INTERVAL_MS = 4000
"""Long enough for an answer to come before the next check, whatever else the machine does."""
SOON = 1
"""The delay level of a second."""
GROUP = "consumers"
RETRY = topics.retry_topic(GROUP)
DEAD_LETTERS = topics.dead_letter_topic(GROUP)
REPLIES = "DefaultCluster_REPLY_TOPIC"
HALF = {props.TRANSACTION_PREPARED: "true", props.PRODUCER_GROUP: "producers"}
CHECKED = {**HALF, props.CHECK_IMMUNITY_TIME_IN_SECONDS: "3"}
"""Our broker asks after this time, Apache's at the next tick (see LONG_AGO_MS). About other transactions nobody asks."""
TEXT = {"colour": "green", "name": "Grüße ✓", props.TAGS: "tag"}


async def plain(stage: Stage, way: str) -> None:
    await stage.send(way, TEXT)


async def plain_with_long_names(stage: Stage, way: str) -> None:
    await stage.send(way, TEXT, code=RequestCode.SEND_MESSAGE)


async def plain_not_waited_for(stage: Stage, way: str) -> None:
    await stage.send(way, {props.WAIT_STORE_MSG_OK: "false"})


async def compressed(stage: Stage, way: str) -> None:
    await stage.send(way, TEXT, body=zlib.compress(way.encode()), sys_flag=sysflag.COMPRESSED)


async def multiple_tags(stage: Stage, way: str) -> None:
    await stage.create_topic(way, "MULTI_TAG")
    await stage.send(way, TEXT)
    await stage.send(way, {**TEXT, props.DELAY_TIME_LEVEL: str(SOON)})
    await stage.record(way, way, 1)


async def batch(stage: Stage, way: str) -> None:
    body = batched(1, b"first", encoded(way, TEXT)) + batched(2, b"second", encoded(way, {"n": "2"}))
    await stage.send(way, {"of": "the batch"}, code=RequestCode.SEND_BATCH_MESSAGE, body=body, batch=True)


async def delayed(stage: Stage, way: str) -> None:
    await stage.send(way, {**TEXT, props.DELAY_TIME_LEVEL: str(SOON)})
    await stage.record(way, way)


async def delayed_by_no_level(stage: Stage, way: str) -> None:
    await stage.send(way, {**TEXT, props.DELAY_TIME_LEVEL: "0"})


async def delayed_by_more_than_there_is(stage: Stage, way: str) -> None:
    await stage.send(way, {**TEXT, props.DELAY_TIME_LEVEL: "99"})


async def redelivered(stage: Stage, way: str) -> None:
    await stage.send(way, TEXT)
    await stage.send_back(await stage.record(way, way), delay_level=SOON, group=GROUP)
    await stage.send_back(await stage.record(way, RETRY), delay_level=SOON, group=GROUP)
    await stage.send_back(await stage.record(way, RETRY, 1), delay_level=-1, group=GROUP)


async def redelivered_after_the_usual_time(stage: Stage, way: str) -> None:
    await stage.send(way, TEXT)
    await stage.send_back(await stage.record(way, way), delay_level=0, group=GROUP)


async def redelivered_without_unique_key(stage: Stage, way: str) -> None:
    await stage.send(way, {props.UNIQUE_KEY: ""})
    await stage.send_back(await stage.record(way, way), delay_level=SOON, group=GROUP)
    await stage.record(way, RETRY)


async def delayed_and_redelivered(stage: Stage, way: str) -> None:
    await stage.send(way, {**TEXT, props.DELAY_TIME_LEVEL: str(SOON)})
    await stage.send_back(await stage.record(way, way), delay_level=SOON, group=GROUP)
    await stage.record(way, RETRY)


async def dead_at_once(stage: Stage, way: str) -> None:
    await stage.send(way, TEXT)
    await stage.send_back(await stage.record(way, way), delay_level=-1, group=GROUP)


async def delayed_and_dead(stage: Stage, way: str) -> None:
    await stage.send(way, {**TEXT, props.DELAY_TIME_LEVEL: str(SOON)})
    await stage.send_back(await stage.record(way, way), delay_level=-1, group=GROUP)


async def sent_again_by_its_consumer(stage: Stage, way: str) -> None:
    await stage.send(way, {**TEXT, **failed(way, 1)}, topic=RETRY, queue_id=0, reconsume_times=1, max_reconsume_times=16)
    await stage.record(way, RETRY)


async def given_up_by_its_consumer(stage: Stage, way: str) -> None:
    await stage.send(way, {**TEXT, **failed(way, 16)}, topic=RETRY, queue_id=0, reconsume_times=16, max_reconsume_times=16)
    await stage.record(way, DEAD_LETTERS)


def failed(way: str, times: int) -> Mapping[str, str]:
    """Returns the properties that a client adds when it resends a failed message itself."""
    return {
        props.RETRY_TOPIC: way,
        props.ORIGIN_MESSAGE_ID: f"ID-{way}",
        props.RECONSUME_TIME: str(times),
        props.MAX_RECONSUME_TIMES: "16",
        props.DELAY_TIME_LEVEL: str(SOON),
    }


async def committed(stage: Stage, way: str) -> None:
    await stage.send(way, {**TEXT, **HALF}, sys_flag=sysflag.TRANSACTION_PREPARED_TYPE)
    await stage.end(await stage.record(way, topics.HALF_TOPIC), COMMIT)
    await stage.record(way, way)


async def committed_compressed(stage: Stage, way: str) -> None:
    flag = sysflag.TRANSACTION_PREPARED_TYPE | sysflag.COMPRESSED
    await stage.send(way, HALF, body=zlib.compress(way.encode()), sys_flag=flag)
    await stage.end(await stage.record(way, topics.HALF_TOPIC), COMMIT)
    await stage.record(way, way)


async def committed_and_redelivered(stage: Stage, way: str) -> None:
    await committed(stage, way)
    await stage.send_back(await stage.record(way, way), delay_level=SOON, group=GROUP)
    await stage.send_back(await stage.record(way, RETRY), delay_level=-1, group=GROUP)


async def rolled_back(stage: Stage, way: str) -> None:
    await stage.send(way, {**TEXT, **HALF}, sys_flag=sysflag.TRANSACTION_PREPARED_TYPE)
    await stage.end(await stage.record(way, topics.HALF_TOPIC), ROLLBACK)


async def committed_after_a_check(stage: Stage, way: str) -> None:
    await stage.send(way, {**TEXT, **CHECKED}, age_ms=LONG_AGO_MS, sys_flag=sysflag.TRANSACTION_PREPARED_TYPE)
    await stage.answer(await stage.check(way, 0), COMMIT)
    await stage.record(way, way)


async def discarded_resumed_and_committed(stage: Stage, way: str) -> None:
    await stage.send(way, {**TEXT, **CHECKED}, age_ms=LONG_AGO_MS, sys_flag=sysflag.TRANSACTION_PREPARED_TYPE)
    for number in range(CHECK_MAX):
        await stage.answer(await stage.check(way, number), UNKNOWN)
    await stage.resume(await stage.record(way, topics.CHECK_MAX_TIME_TOPIC))
    await stage.end(await stage.resumed(way), COMMIT)
    await stage.record(way, way)


async def replied(stage: Stage, way: str) -> None:
    asked = {**TEXT, props.REPLY_TO_CLIENT: CLIENT_ID, "CORRELATION_ID": "one", "MSG_TYPE": "reply"}
    await stage.send(way, asked, code=RequestCode.SEND_REPLY_MESSAGE_V2, topic=REPLIES, queue_id=0)
    await stage.record(way, REPLIES)


async def replied_compressed(stage: Stage, way: str) -> None:
    asked = {props.REPLY_TO_CLIENT: CLIENT_ID}
    body = zlib.compress(way.encode())
    await stage.send(
        way, asked, code=RequestCode.SEND_REPLY_MESSAGE, topic=REPLIES, queue_id=0, body=body, sys_flag=sysflag.COMPRESSED
    )
    await stage.record(way, REPLIES)


Way = Callable[[Stage, str], Awaitable[None]]
WAYS: Mapping[str, Way] = MappingProxyType(
    {
        way.__name__: way
        for way in (
            plain,
            plain_with_long_names,
            plain_not_waited_for,
            compressed,
            multiple_tags,
            batch,
            delayed,
            delayed_by_no_level,
            delayed_by_more_than_there_is,
            redelivered,
            redelivered_after_the_usual_time,
            redelivered_without_unique_key,
            delayed_and_redelivered,
            dead_at_once,
            delayed_and_dead,
            sent_again_by_its_consumer,
            given_up_by_its_consumer,
            committed,
            committed_compressed,
            committed_and_redelivered,
            rolled_back,
            committed_after_a_check,
            discarded_resumed_and_committed,
            replied,
            replied_compressed,
        )
    }
)


async def play(stage: Stage) -> None:
    """Runs all paths concurrently."""
    await stage.be_known()
    await asyncio.gather(*(way(stage, name) for name, way in WAYS.items()))
