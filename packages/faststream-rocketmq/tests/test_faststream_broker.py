"""Tests of the FastStream broker with RocketMQ's test double: acknowledgements, transactions, routers and error messages."""

import logging
from typing import Annotated, Any

import pytest
from faststream import AckPolicy, Context, FastStream
from faststream.exceptions import FeatureNotSupportedException, IncorrectState, NackMessage, SetupError, StopConsume
from faststream.specification import AsyncAPI

from faststream_rocketmq import LocalTransactionState, RocketMQBroker, RocketMQMessage, RocketMQResponse
from faststream_rocketmq.registrator import RocketMQRouter
from faststream_rocketmq.testing import TestRocketMQBroker
from rocketmq_broker.client import IllegalConfiguration, Message, MessageExt, MessageRefused
from rocketmq_broker.testing import RocketMQ

COMMIT, ROLLBACK = LocalTransactionState.COMMIT_MESSAGE, LocalTransactionState.ROLLBACK_MESSAGE


@pytest.fixture
def broker() -> RocketMQBroker:
    return RocketMQBroker(group="producers", logger=None)


async def test_a_message_reaches_its_handler_with_its_type_and_its_headers(broker: RocketMQBroker) -> None:
    got: list[Any] = []

    @broker.subscriber("orders", group="g")
    async def handle(body: dict[str, int], message: RocketMQMessage) -> None:
        assert isinstance(message.raw_message, MessageExt)
        got.append((body, message.headers["colour"], message.raw_message.tags, message.raw_message.keys, message.correlation_id))

    async with TestRocketMQBroker(broker) as tested:
        await tested.publish({"n": 1}, "orders", tags="a", keys=["k", "l"], headers={"colour": "red"}, correlation_id="c")
    assert got == [({"n": 1}, "red", "a", ("k", "l"), "c")]


@pytest.mark.parametrize(("sent", "got"), [("text", "text"), (b"\xff\x00", b"\xff\x00"), ([1, 2], [1, 2])])
async def test_a_body_arrives_as_it_was_sent(broker: RocketMQBroker, sent: object, got: object) -> None:
    @broker.subscriber("orders", group="g")
    async def handle(body: Any) -> None: ...

    async with TestRocketMQBroker(broker) as tested:
        await tested.publish(sent, "orders")
        handle.mock.assert_called_once_with(got)


async def test_a_message_without_body_is_refused(broker: RocketMQBroker) -> None:
    async with TestRocketMQBroker(broker) as tested:
        with pytest.raises(MessageRefused, match="must not be empty"):
            await tested.publish(None, "orders")


async def test_a_message_of_another_client_is_handled(broker: RocketMQBroker, rocketmq: RocketMQ) -> None:
    @broker.subscriber("orders", group="g")
    async def handle(body: Any) -> None: ...

    async with TestRocketMQBroker(broker, rocketmq=rocketmq):
        producer = await rocketmq.producer("elsewhere")
        await producer.send(Message.of("orders", '{"n": 1}'))
        await rocketmq.advance(seconds=1)
        handle.mock.assert_called_once_with({"n": 1})


async def test_a_subscriber_gets_the_tags_that_it_asked_for(broker: RocketMQBroker) -> None:
    @broker.subscriber("orders", group="g", tags="a || b")
    async def handle(body: str) -> None: ...

    async with TestRocketMQBroker(broker) as tested:
        for tag in ("a", "b", "c"):
            await tested.publish(tag, "orders", tags=tag)
        assert [call.args[0] for call in handle.mock.call_args_list] == ["a", "b"]


async def test_a_handler_that_is_not_async_has_run_when_publish_returns(broker: RocketMQBroker) -> None:
    @broker.subscriber("orders", group="g")
    def handle(body: str) -> None: ...

    async with TestRocketMQBroker(broker) as tested:
        for number in range(10):
            await tested.publish(str(number), "orders")
            assert handle.mock.call_count == number + 1


async def test_an_orderly_subscriber_repeats_a_message_before_the_next_one(broker: RocketMQBroker) -> None:
    got: list[str] = []

    @broker.subscriber("orders", group="g", orderly=True)
    async def handle(body: str) -> None:
        got.append(body)
        if got == ["first"]:
            raise RuntimeError("the handler fails once")

    test = TestRocketMQBroker(broker)
    async with test:
        producer = await test.rocketmq.producer("elsewhere")
        (queue, *_) = await producer.queues("orders")
        for body in ("first", "second"):
            await producer.send(Message.of("orders", body), queue)
        await test.rocketmq.advance(seconds=5)
    assert got == ["first", "first", "second"]


async def test_a_message_whose_handler_raised_comes_again_after_its_delay(broker: RocketMQBroker) -> None:
    attempts: list[int] = []

    @broker.subscriber("orders", group="g")
    async def handle(body: str, message: RocketMQMessage) -> None:
        attempts.append(message.raw_message.reconsume_times)
        if len(attempts) == 1:
            raise RuntimeError("the handler fails once")

    test = TestRocketMQBroker(broker)
    async with test as tested:
        await tested.publish("x", "orders")
        assert attempts == [0]
        await test.rocketmq.advance(seconds=9)
        assert attempts == [0]
        await test.rocketmq.advance(seconds=2)
        assert attempts == [0, 1]


@pytest.mark.parametrize("way", ["method", "exception"])
async def test_a_nack_decides_the_delay(broker: RocketMQBroker, way: str) -> None:
    @broker.subscriber("orders", group="g")
    async def handle(body: str, message: RocketMQMessage) -> None:
        if message.raw_message.reconsume_times == 0:
            if way == "exception":
                raise NackMessage(delay_level=5)
            await message.nack(delay_level=5)

    test = TestRocketMQBroker(broker)
    async with test as tested:
        await tested.publish("x", "orders")
        await test.rocketmq.advance(seconds=59)
        assert handle.mock.call_count == 1
        await test.rocketmq.advance(seconds=2)
        assert handle.mock.call_count == 2


@pytest.mark.parametrize(
    ("policy", "comes_again", "is_dead"),
    [
        (AckPolicy.REJECT_ON_ERROR, False, True),
        (AckPolicy.ACK, False, False),
        (AckPolicy.NACK_ON_ERROR, True, False),
        (AckPolicy.MANUAL, True, False),
    ],
)
async def test_the_ack_policy_decides_about_a_message_whose_handler_raised(
    broker: RocketMQBroker, policy: AckPolicy, comes_again: bool, is_dead: bool
) -> None:
    @broker.subscriber("orders", group="g", ack_policy=policy)
    async def handle(body: str) -> None:
        raise RuntimeError("the handler always fails")

    test = TestRocketMQBroker(broker)
    async with test as tested:
        await tested.publish("x", "orders")
        await test.rocketmq.advance(seconds=11)
        assert handle.mock.call_count == (2 if comes_again else 1)
        assert len(await test.rocketmq.messages("%DLQ%g")) == is_dead


async def test_a_handler_s_result_is_published_with_what_its_response_says(broker: RocketMQBroker) -> None:
    got: list[Any] = []

    @broker.subscriber("orders", group="g")
    @broker.publisher("credits", tags="usual", headers={"colour": "red", "size": "m"})
    async def handle(body: str) -> Any:
        return RocketMQResponse(body * 2, tags="own" if body == "b" else None, keys=[body], headers={"size": "l"})

    @broker.subscriber("credits", group="h")
    async def see(body: str, message: RocketMQMessage) -> None:
        raw = message.raw_message
        got.append((body, raw.tags, raw.keys, raw.properties["colour"], raw.properties["size"]))

    async with TestRocketMQBroker(broker) as tested:
        await tested.publish("a", "orders")
        await tested.publish("b", "orders")
    assert got == [("aa", "usual", ("a",), "red", "l"), ("bb", "own", ("b",), "red", "l")]


async def test_a_publisher_that_nobody_subscribes_to_can_be_asserted(broker: RocketMQBroker) -> None:
    publisher = broker.publisher("credits")

    async with TestRocketMQBroker(broker):
        await publisher.publish({"n": 1}, keys=["k"])
        await publisher.assert_called_once_with({"n": 1})


async def test_a_message_with_a_delay_level_comes_later(broker: RocketMQBroker) -> None:
    publisher = broker.publisher("credits")

    test = TestRocketMQBroker(broker)
    async with test:
        await publisher.publish("x", delay_time_level=2)
        publisher.mock.assert_not_called()
        await test.rocketmq.advance(seconds=6)
        publisher.mock.assert_called_once_with("x")


class Shop:
    """An application with a transactional publisher, whose handlers return the given results."""

    def __init__(self, broker: RocketMQBroker, state: LocalTransactionState | Exception, found: Any = COMMIT) -> None:
        self.orders = broker.transactional_publisher("orders", tags="paid")
        self.args: list[object] = []

        @self.orders.local_transaction
        async def store(order: dict[str, int], message: RocketMQMessage) -> LocalTransactionState:
            self.args.append(message.arg)
            if isinstance(state, Exception):
                raise state
            return state

        @self.orders.answers_check_backs
        async def look_up(order: dict[str, int], message: RocketMQMessage, found: Annotated[Any, Context("found")]) -> Any:
            return found

        broker.context.set_global("found", found)
        self.store, self.look_up = store, look_up


async def test_a_transactional_message_is_delivered_once_its_local_transaction_committed(broker: RocketMQBroker) -> None:
    shop = Shop(broker, COMMIT)
    async with TestRocketMQBroker(broker):
        sent = await shop.orders.publish({"n": 1}, keys=["order-1"], arg="the session")
        assert sent.local_transaction_state is COMMIT
        await shop.orders.assert_called_once_with({"n": 1})
        await shop.store.assert_called_once_with({"n": 1})
        shop.look_up.mock.assert_not_called()
    assert shop.args == ["the session"]


async def test_a_rollback_leaves_the_message_invisible(broker: RocketMQBroker) -> None:
    shop = Shop(broker, ROLLBACK)
    test = TestRocketMQBroker(broker)
    async with test:
        sent = await shop.orders.publish({"n": 1})
        assert sent.local_transaction_state is ROLLBACK
        await test.rocketmq.advance(minutes=5)
        shop.orders.mock.assert_not_called()


@pytest.mark.parametrize("found", [COMMIT, ROLLBACK])
async def test_a_local_transaction_that_raised_is_settled_by_its_check_back(broker: RocketMQBroker, found: Any) -> None:
    shop = Shop(broker, RuntimeError("the database is away"), found)
    test = TestRocketMQBroker(broker)
    async with test:
        sent = await shop.orders.publish({"n": 1})
        assert sent.local_transaction_state is LocalTransactionState.UNKNOWN
        await test.rocketmq.advance(minutes=2)
        await shop.look_up.assert_called_once_with({"n": 1})
        assert shop.orders.mock.called == (found is COMMIT)


async def test_a_handler_s_result_can_be_sent_in_a_transaction(broker: RocketMQBroker) -> None:
    shop = Shop(broker, COMMIT)

    @broker.subscriber("payments", group="g")
    @shop.orders
    async def handle(body: dict[str, int]) -> dict[str, int]:
        return {"n": body["n"] + 1}

    async with TestRocketMQBroker(broker) as tested:
        await tested.publish({"n": 1}, "payments")
        await shop.orders.assert_called_once_with({"n": 2})
        await shop.store.assert_called_once_with({"n": 2})


async def test_a_router_puts_its_prefix_before_its_topics(broker: RocketMQBroker) -> None:
    router = RocketMQRouter("shop-")

    @router.subscriber("orders", group="g")
    @router.publisher("credits")
    async def handle(body: str) -> str:
        return body

    @broker.subscriber("shop-credits", group="h")
    async def see(body: str) -> None: ...

    broker.include_router(router)
    async with TestRocketMQBroker(broker) as tested:
        await tested.publish("x", "shop-orders")
        see.mock.assert_called_once_with("x")


async def test_a_handler_can_stop_its_subscriber(broker: RocketMQBroker) -> None:
    @broker.subscriber("orders", group="g")
    async def handle(body: str) -> None:
        raise StopConsume

    test = TestRocketMQBroker(broker)
    async with test as tested:
        await tested.publish("x", "orders")
        await test.rocketmq.advance(minutes=1)
        await tested.publish("y", "orders")
        await test.rocketmq.advance(minutes=1)
        assert handle.mock.call_count == 1


async def test_a_broker_starts_again_after_its_stop(broker: RocketMQBroker) -> None:
    shop = Shop(broker, COMMIT)
    for _ in range(2):
        async with TestRocketMQBroker(broker):
            await shop.orders.publish({"n": 1})
            assert await broker.ping(1.0)
            shop.orders.mock.assert_called_once()
    assert not await broker.ping(1.0)


async def test_an_application_s_asyncapi_names_topics_and_hides_the_halves_of_a_transaction(broker: RocketMQBroker) -> None:
    Shop(broker, COMMIT)

    @broker.subscriber("payments", group="g", title="Payments")
    async def handle(body: str) -> None: ...

    page = AsyncAPI(broker).to_specification().to_jsonable()
    assert {channel["address"] for channel in page["channels"].values()} == {"orders", "payments"}
    assert page["servers"]["development"]["protocol"] == "rocketmq"


async def test_the_log_names_topic_and_message_but_no_body(caplog: pytest.LogCaptureFixture) -> None:
    broker = RocketMQBroker(group="producers")

    @broker.subscriber("orders", group="g")
    async def handle(body: str) -> None: ...

    logging.getLogger("faststream.access.rocketmq").addHandler(caplog.handler)
    async with TestRocketMQBroker(broker) as tested:
        sent = await tested.publish("secret", "orders")
    logging.getLogger("faststream.access.rocketmq").removeHandler(caplog.handler)
    received = [record for record in caplog.records if record.getMessage() == "Received"]
    assert [(record.topic, record.message_id) for record in received] == [("orders", sent.message_id)]  # type: ignore[attr-defined]
    assert "secret" not in caplog.text


# mistakes


async def test_a_publisher_without_connection_says_so(broker: RocketMQBroker) -> None:
    with pytest.raises(IncorrectState, match="not connected"):
        await broker.publish("x", "orders")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"ack_policy": AckPolicy.ACK_FIRST}, "AckPolicy.ACK_FIRST is not supported"),
        ({"consume_message_batch_max_size": 8}, "handlers get one message"),
    ],
)
def test_what_cannot_be_is_refused_where_it_is_written(broker: RocketMQBroker, options: Any, sentence: str) -> None:
    with pytest.raises(SetupError, match=sentence):
        broker.subscriber("orders", group="g", **options)


async def test_an_unknown_option_of_a_consumer_is_named(broker: RocketMQBroker) -> None:
    @broker.subscriber("orders", group="g", consume_threads=3)
    async def handle(body: str) -> None: ...

    with pytest.raises(IllegalConfiguration, match="consume_threads"):
        async with TestRocketMQBroker(broker):
            pass


async def test_two_subscribers_need_two_groups(broker: RocketMQBroker) -> None:
    for topic in ("orders", "credits"):

        @broker.subscriber(topic, group="g")
        async def handle(body: str) -> None: ...

    with pytest.raises(SetupError, match="a subscriber in group g is defined twice"):
        async with TestRocketMQBroker(broker):
            pass


async def test_two_transactional_publishers_need_two_topics(broker: RocketMQBroker) -> None:
    Shop(broker, COMMIT), Shop(broker, COMMIT)
    with pytest.raises(SetupError, match="a transactional publisher for topic orders is defined twice"):
        async with TestRocketMQBroker(broker):
            pass


async def test_a_transactional_publisher_needs_both_handlers(broker: RocketMQBroker) -> None:
    orders = broker.transactional_publisher("orders")

    @orders.local_transaction
    async def store(order: str) -> LocalTransactionState:
        return COMMIT

    with pytest.raises(SetupError, match="has no `answers_check_backs` handler"):
        async with TestRocketMQBroker(broker):
            pass
    with pytest.raises(SetupError, match="already has the handler Store"):
        orders.local_transaction(lambda order: COMMIT)


async def test_what_rocketmq_has_elsewhere_says_where(broker: RocketMQBroker) -> None:
    for call in (broker.request("x", "orders"), broker.publisher("orders").request("x")):
        with pytest.raises(FeatureNotSupportedException, match=r"rocketmq_broker\.client\.Producer"):
            await call
    subscriber = broker.subscriber("orders", group="g")
    with pytest.raises(FeatureNotSupportedException, match="do not support get_one"):
        await subscriber.get_one()


def test_an_application_takes_it(broker: RocketMQBroker) -> None:
    assert FastStream(broker).broker is broker
