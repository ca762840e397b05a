"""Tests of the topics that brokers and programs see if clients use a namespace. The test controls the time."""

from rocketmq_broker.client import (
    ConsumeContext,
    ConsumeFromWhere,
    ConsumeStatus,
    Message,
    MessageExt,
    MessageQueue,
    PullConsumer,
    create_reply_message,
)
from rocketmq_broker.testing.rocketmq import RocketMQ
from tests.unit.testing.listeners import COMMIT, UNKNOWN, Consumption, Transactions, order

FROM_FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


async def test_a_message_reaches_the_consumers_of_its_namespace_and_no_others(rocketmq: RocketMQ) -> None:
    inside, other, outside = Consumption(), Consumption(), Consumption()
    producer = await rocketmq.producer("p", namespace="tenant")
    await producer.create_topic("orders", 2)
    await rocketmq.consumer("g", "orders", inside, namespace="tenant")
    await rocketmq.consumer("g", "orders", other, namespace="neighbour")
    await rocketmq.consumer("g", "orders", outside)
    sent = await producer.send(order())
    await producer.send(order(), queue=(await producer.queues("orders"))[0])
    await producer.send_batch([order(), order()])
    await producer.send_oneway(order())
    await rocketmq.advance(minutes=1)
    assert sent.queue.topic == "orders"
    assert {queue.topic for queue in await producer.queues("orders")} == {"orders"}
    assert await producer.why_unsendable("orders") is None
    assert await producer.refusing_brokers("orders") == []
    assert [(message.topic, message.properties["INSTANCE_ID"]) for message in inside.got] == [("orders", "tenant")] * 5
    assert other.got == outside.got == []
    assert len(await rocketmq.messages("tenant%orders")) == 5


async def test_a_check_back_is_asked_and_answered_with_the_programs_own_topic(rocketmq: RocketMQ) -> None:
    topics: list[str] = []

    class Asked(Transactions):
        def execute_local_transaction(self, message: Message, arg: object) -> object:  # type: ignore[override]
            topics.append(message.topic)
            return UNKNOWN

        def check_local_transaction(self, message: MessageExt) -> object:  # type: ignore[override]
            topics.append(message.topic)
            return COMMIT

    producer = await rocketmq.transaction_producer("p", {"orders": Asked()}, namespace="tenant")  # type: ignore[dict-item]
    result = await producer.send_message_in_transaction(order())
    await rocketmq.advance(minutes=1)
    (message,) = await rocketmq.messages("tenant%orders")
    assert topics == [result.queue.topic, "orders"] == ["orders", "orders"]
    assert (message.properties["REAL_TOPIC"], message.properties["PGROUP"]) == ("tenant%orders", "tenant%p")
    assert await producer.count_discarded() == 0


async def test_a_message_that_fails_comes_again_and_is_a_dead_letter_in_its_namespace(rocketmq: RocketMQ) -> None:
    failing = Consumption(failures=9)
    consumer = await rocketmq.consumer("g", "orders", failing, namespace="tenant", max_reconsume_times=1)
    producer = await rocketmq.producer("p", namespace="tenant")
    await producer.send(order())
    await rocketmq.advance(minutes=2)
    assert [(message.topic, message.reconsume_times) for message in failing.got] == [("orders", 0), ("orders", 1)]
    assert len(await rocketmq.messages("%RETRY%tenant%g")) == len(await rocketmq.messages("%DLQ%tenant%g")) == 1
    assert {queue.topic for queue in consumer.queues} == {"orders", "%RETRY%g"}
    assert {one.queue for one in consumer.progress} == consumer.queues
    assert await consumer.count_dead_letters() == 1


async def test_an_ordered_listener_has_the_queue_of_its_program_and_a_topic_can_be_left(rocketmq: RocketMQ) -> None:
    queues: list[MessageQueue] = []

    async def listen(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        queues.append(context.message_queue)
        return ConsumeStatus.RECONSUME_LATER if len(queues) == 1 else ConsumeStatus.CONSUME_SUCCESS

    producer = await rocketmq.producer("p", namespace="tenant")
    consumer = await rocketmq.consumer("g", "orders", listen, orderly=True, namespace="tenant")
    await producer.send(order())
    await rocketmq.advance(minutes=1)
    assert [queue.topic for queue in queues] == ["orders", "orders"]
    consumer.unsubscribe("orders")
    await rocketmq.advance(minutes=1)
    await producer.send(order())
    await rocketmq.advance(minutes=1)
    assert len(queues) == 2


async def test_a_pull_consumer_pulls_polls_seeks_and_commits_in_its_namespace(rocketmq: RocketMQ) -> None:
    producer = await rocketmq.producer("p", namespace="tenant")
    await producer.create_topic("orders", 1)
    await producer.send(order())
    async with PullConsumer(
        "g", namesrv_addr=rocketmq.namesrv_addr, namespace="tenant", consume_from_where=FROM_FIRST
    ) as consumer:
        (queue,) = await consumer.queues("orders")
        assert queue.topic == "orders"
        answer = await consumer.pull(queue, 0)
        assert [message.message_queue for message in answer.messages] == [queue]
        assert (await consumer.min_offset(queue), await consumer.max_offset(queue)) == (0, 1)
        assert await consumer.search_offset(queue, 0) == 0
        consumer.assign([queue])
        assert [message.topic for message in await consumer.poll()] == ["orders"]
        await consumer.commit()
        assert await consumer.committed(queue) == 1
        consumer.seek(queue, 0)
        assert [message.topic for message in await consumer.poll()] == ["orders"]


async def test_a_request_gets_its_reply_in_a_namespace(rocketmq: RocketMQ) -> None:
    producer = await rocketmq.producer("p", namespace="tenant")
    await producer.create_topic("quotes", 1)

    async def reply(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        for message in messages:
            await producer.send(create_reply_message(message, f"it costs {message.text}"))
        return ConsumeStatus.CONSUME_SUCCESS

    await rocketmq.consumer("g", "quotes", reply, namespace="tenant")
    assert (await producer.request(Message.of("quotes", "1 €"), timeout_ms=60_000)).text == "it costs 1 €"
