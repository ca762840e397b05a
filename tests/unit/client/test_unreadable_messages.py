"""Decompression bombs and damaged bodies become dead letters, and the queue's next messages are consumed."""

import zlib
from dataclasses import replace

import pytest

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, UnreadableMessage
from rocketmq_broker.client.errors import ClientError, UnreadableAnswer
from rocketmq_broker.client.instance.calls import understood
from rocketmq_broker.client.pull.process_queue import ProcessQueue
from rocketmq_broker.client.pull.queue_requests import messages_of
from rocketmq_broker.client.push.concurrent_consumption import ConcurrentConsumption
from rocketmq_broker.client.push.listener_runners import ListenerThreads
from rocketmq_broker.client.push.orderly_consumption import OrderlyConsumption
from rocketmq_broker.message import MessageExt, sysflag
from rocketmq_broker.message.errors import BodyTooLong, CorruptRecord
from rocketmq_broker.message.record import Record, to_message
from rocketmq_broker.protocol.errors import BodyError
from rocketmq_broker.world import World
from tests.passing_time import SteadyClock
from tests.stored_records import stored
from tests.unit.client.messages import QUEUE
from tests.unit.client.push.test_consumption import Return, concurrent, orderly
from tests.waiting import until


def record(queue_offset: int, body: bytes, sys_flag: int = sysflag.COMPRESSED) -> Record:
    named = {"UNIQ_KEY": f"M{queue_offset}"}
    return stored("orders", body, named, queue_offset=queue_offset, commit_log_offset=queue_offset * 100, sys_flag=sys_flag)


def bomb(size: int) -> bytes:
    return zlib.compress(bytes(size), 9)


@pytest.mark.slow
def test_a_bomb_is_refused_without_being_inflated() -> None:
    packed = bomb(200_000_000)

    with pytest.raises(BodyTooLong, match="too long when decompressed: at most 16777216 bytes"):
        to_message(record(0, packed))


def test_a_body_as_long_as_the_limit_is_read() -> None:
    assert to_message(record(0, bomb(1000)), max_body_length=1000).body == bytes(1000)


@pytest.mark.parametrize("body", [b"no zlib", bomb(1000)[:-3], b""])
def test_a_damaged_or_cut_body_is_refused(body: bytes) -> None:
    with pytest.raises(CorruptRecord):
        to_message(record(0, body))


def test_a_record_with_a_topic_that_is_no_text_and_a_negative_offset_is_still_a_message() -> None:
    odd = replace(stored(queue_offset=-5, commit_log_offset=-1), topic=b"\xd5")
    assert to_message(odd).topic == "\N{REPLACEMENT CHARACTER}"
    assert to_message(odd).message_id.endswith("FFFFFFFFFFFFFFFF")


@pytest.mark.parametrize("size", [800, 2000], ids=["whole", "their beginnings"])
def test_bombs_do_not_add_up_in_one_pull(size: int) -> None:
    records = [record(offset, bomb(size)) for offset in range(5)]

    messages, left_for_later = messages_of(records, "broker-a", max_body_length=1000)

    assert ([message.queue_offset for message in messages], left_for_later) == ([0], 1)


def test_what_no_reader_takes_is_marked_and_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    messages, left_for_later = messages_of([record(0, bomb(2000)), record(1, b"x", 0)], "broker-a", max_body_length=1000)

    assert left_for_later is None
    assert [type(message) for message in messages] == [UnreadableMessage, MessageExt]
    assert "message M0 of topic orders cannot be read: body at 0 is too long" in caplog.text


def pulled() -> list[MessageExt]:
    records = [record(0, b"a", 0), record(1, bomb(2000)), record(2, b"b", 0)]
    return messages_of(records, "broker-a", max_body_length=1000)[0]


@pytest.mark.parametrize("is_orderly", [False, True])
@pytest.mark.parametrize("batch_size", [1, 3])
async def test_an_unreadable_message_goes_to_the_dead_letters_and_the_queue_moves_on(is_orderly: bool, batch_size: int) -> None:
    seen: list[bytes] = []

    def listener(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        seen.extend(message.body for message in messages)
        return ConsumeStatus.CONSUME_SUCCESS

    returned, threads = Return(), ListenerThreads("listener", 1, None)
    consumption: ConcurrentConsumption | OrderlyConsumption
    if is_orderly:
        consumption = orderly(threads, listener, returned=returned, batch_size=batch_size)
    else:
        consumption = concurrent(threads, listener, returned, batch_size=batch_size)
    queue = ProcessQueue(QUEUE, 0, World())
    consumption.arrived(queue, queue.put(pulled(), 3))

    await until(lambda: queue.message_count == 0)
    await consumption.stop(1)

    assert seen == [b"a", b"b"]
    assert (returned.taken, returned.dead) == (([], [1]) if is_orderly else ([(1, -1)], []))
    assert queue.committable_offset == 3


async def test_an_answer_without_sense_is_an_error_of_the_client() -> None:
    @understood
    async def ask(error: Exception) -> None:
        raise error

    for error in (BodyError("no JSON"), CorruptRecord("torn")):
        with pytest.raises(UnreadableAnswer, match="the response cannot be decoded"):
            await ask(error)
    with pytest.raises(ClientError, match="itself"):
        await ask(ClientError("itself"))


def queue_with_clock() -> tuple[ProcessQueue, SteadyClock]:
    clock = SteadyClock()
    return ProcessQueue(QUEUE, 0, World(steady_ns=lambda: int(clock() * 1e9))), clock


def test_a_queue_whose_oldest_message_stays_stands_still() -> None:
    queue, clock = queue_with_clock()
    messages = queue.put(pulled(), 3)
    clock.now_s = 100.0
    queue.acknowledge([2])
    assert (queue.progress.unacknowledged, queue.progress.stands_still_s) == (2, 100.0)

    queue.acknowledge([messages[0].queue_offset])
    assert queue.progress.stands_still_s == 0.0


def test_an_idle_queue_moves_as_long_as_pulls_are_answered() -> None:
    queue, clock = queue_with_clock()
    clock.now_s = 29.0
    assert queue.progress.stands_still_s == 0.0
    clock.now_s = 500.0
    assert queue.progress.stands_still_s == 500.0
    queue.put([], 0)
    assert queue.progress.stands_still_s == 0.0


def test_messages_that_just_came_to_an_idle_queue_do_not_stand_still() -> None:
    queue, clock = queue_with_clock()
    clock.now_s = 500.0
    queue.put(pulled(), 3)
    assert queue.progress.stands_still_s == 0.0
