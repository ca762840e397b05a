"""Tests the information that consumers report: under Java's names, and from clients in other languages."""

import pytest

from rocketmq_broker.message import MessageQueue
from rocketmq_broker.protocol import BodyError
from rocketmq_broker.protocol.bodies.running_info import (
    PROP_CONSUME_ORDERLY,
    PROP_CONSUME_TYPE,
    PROP_THREADPOOL_CORE_SIZE,
    CMResult,
    ConsumeMessageDirectlyResult,
    ConsumerRunningInfo,
    ConsumeSpeed,
    ProcessQueueInfo,
)
from rocketmq_broker.protocol.queue_table import QueueTable

QUEUE = MessageQueue("orders", "broker-a", 3)


def test_members_with_odd_names_are_written_as_java_writes_them() -> None:
    info = ConsumerRunningInfo(
        properties={PROP_CONSUME_TYPE: "CONSUME_PASSIVELY"},
        mq_table=QueueTable({QUEUE: ProcessQueueInfo(cached_msg_size_in_mi_b=7, droped=True)}),
        status_table={"orders": ConsumeSpeed(pull_rt=1.5, consume_ok_tps=2.5)},
    )
    encoded = info.encode()
    for member in (b'"cachedMsgSizeInMiB":7', b'"droped":true', b'"pullRT":1.5', b'"consumeOKTPS":2.5', b'"mqTable":{{'):
        assert member in encoded
    assert ConsumerRunningInfo.decode(encoded) == info


def test_the_properties_have_rocketmqs_names() -> None:
    assert PROP_CONSUME_ORDERLY == "PROP_CONSUMEORDERLY"
    assert PROP_THREADPOOL_CORE_SIZE == "PROP_THREADPOOL_CORE_SIZE"


def test_a_thread_dump_is_written_where_there_is_one() -> None:
    assert b"jstack" not in ConsumerRunningInfo().encode()
    assert b'"jstack":"main"' in ConsumerRunningInfo(jstack="main").encode()


def test_a_result_by_its_ordinal_is_left_to_who_knows_its_client() -> None:
    ordinal = list(CMResult).index(CMResult.CR_ROLLBACK)
    result = ConsumeMessageDirectlyResult.decode(b'{"consumeResult":%d,"spentTimeMills":12}' % ordinal)
    assert (result.consume_result, result.spent_time_mills) == (2, 12)


@pytest.mark.parametrize("result", list(CMResult))
def test_every_result_comes_back_as_it_went(result: CMResult) -> None:
    body = ConsumeMessageDirectlyResult(order=True, auto_commit=False, consume_result=result, remark="why")
    assert ConsumeMessageDirectlyResult.decode(body.encode()) == body


def test_a_result_that_nobody_knows_is_refused() -> None:
    with pytest.raises(BodyError, match="ConsumeMessageDirectlyResult"):
        ConsumeMessageDirectlyResult.decode(b'{"consumeResult":"CR_MAYBE"}')
