"""Long responses are encoded in steps, with the same bytes as in a single step."""

import pytest

from rocketmq_broker.message import MessageQueue
from rocketmq_broker.message.steps import finish
from rocketmq_broker.protocol.bodies.topic import TopicList, TopicOffset, TopicStatsTable
from rocketmq_broker.protocol.queue_table import QueueTable
from rocketmq_broker.remoting.long_tables import list_in_steps, table_in_steps


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5])
def test_a_list_in_steps_has_the_bytes_of_the_whole_list(count: int) -> None:
    names = [f"topic-[]-{number}" for number in range(count)]
    steps = list_in_steps(
        names, lambda part: TopicList(topic_list=part, broker_addr="b:1").encode(), at_once=2, advice="ask less"
    )
    assert finish(steps) == TopicList(topic_list=names, broker_addr="b:1").encode()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5])
def test_a_table_of_queues_in_steps_has_the_bytes_of_the_whole_table(count: int) -> None:
    table = {MessageQueue("orders", "b", number): TopicOffset(max_offset=number) for number in range(count)}
    steps = table_in_steps(
        table.items(), lambda part: TopicStatsTable(offset_table=QueueTable(part)).encode(), at_once=2, advice="ask less"
    )
    assert finish(steps) == TopicStatsTable(offset_table=QueueTable(table)).encode()


def test_it_yields_after_each_part() -> None:
    steps = list_in_steps(
        [str(number) for number in range(6)], lambda part: TopicList(topic_list=part).encode(), at_once=2, advice=""
    )
    assert len(list(steps)) == 3
