"""Tests of RocketMQ 5's consumers: hiding, acknowledging, returning and discarding messages."""

import asyncio
from typing import Any

import pytest

from rocketmq_broker.client import ConsumeStatus, MessageExt
from rocketmq_broker.message import topics
from rocketmq_broker.proxy.protos import definition_pb2 as api
from rocketmq_broker.proxy.protos import service_pb2 as service
from rocketmq_broker.server.popping import waiting_pops
from rocketmq_broker.server.popping.hidden_messages import CheckPoint
from rocketmq_broker.server.popping.pop_log import PopEntry
from rocketmq_broker.testing import RocketMQ
from tests.component.proxy.api_client import SERVICE, ApiClient, Telemetry, connected

GROUP = api.Resource(name="group")
ORDERS = api.Resource(name="orders")


def seconds(count: float) -> Any:
    duration = api.SystemProperties().invisible_duration
    duration.FromMilliseconds(int(count * 1000))
    return duration


async def receive(
    client: ApiClient,
    *,
    invisible_s: float = 30,
    poll_s: float = 0,
    group: api.Resource = GROUP,
    topic: api.Resource = ORDERS,
    **fields: Any,
) -> list[api.Message]:
    """Returns the messages of one call. Checks the status first."""
    answers = await client.stream(
        "ReceiveMessage",
        group=group,
        message_queue=api.MessageQueue(topic=topic, id=-1),
        batch_size=32,
        invisible_duration=seconds(invisible_s),
        long_polling_timeout=seconds(poll_s),
        **fields,
    )
    found = [answer.message for answer in answers if answer.HasField("message")]
    assert answers[0].status.code == (api.OK if found else api.MESSAGE_NOT_FOUND), answers[0].status.message
    return found


async def after(client: ApiClient, name: str, message: api.Message, **fields: Any) -> Any:
    system = message.system_properties
    named = {"message_id": system.message_id, "receipt_handle": system.receipt_handle}
    return await client.call(name, group=GROUP, topic=ORDERS, **named, **fields)


async def ack(client: ApiClient, *messages: api.Message) -> list[api.Code]:
    handles = [
        {"receipt_handle": it.system_properties.receipt_handle, "message_id": it.system_properties.message_id} for it in messages
    ]
    response = await client.call("AckMessage", group=GROUP, topic=ORDERS, entries=handles)
    return [entry.status.code for entry in response.entries]


async def push_consumer(client: ApiClient) -> Telemetry:
    telemetry = client.telemetry()
    await telemetry.settle(client.consumer_settings(api.PUSH_CONSUMER, "orders"))
    return telemetry


async def living(rocketmq: RocketMQ, client: ApiClient, *, minutes: int) -> None:
    """Advances the time while the client sends heartbeats."""
    for _ in range(minutes):
        await rocketmq.advance(minutes=1)
        assert (await client.call("Heartbeat", group=GROUP, client_type=api.PUSH_CONSUMER)).status.code == api.OK


async def test_a_message_comes_with_what_its_sender_gave_and_once_it_is_acknowledged_no_more(
    rocketmq: RocketMQ, client: ApiClient
) -> None:
    await client.send("orders", b"hello", tag="red", keys=["a", "b"], message_group="customer-1")
    (message,) = await receive(client)
    system = message.system_properties
    assert (message.body, system.tag, system.keys, system.message_group) == (b"hello", "red", ["a", "b"], "customer-1")
    assert (system.message_type, system.delivery_attempt, message.topic.name) == (api.FIFO, 1, "orders")
    assert not await receive(client)
    assert await ack(client, message) == [api.OK]
    await rocketmq.advance(minutes=1)
    assert not await receive(client)


async def test_what_is_not_acknowledged_comes_again_with_another_handle(rocketmq: RocketMQ, client: ApiClient) -> None:
    await client.send("orders", b"hello")
    (first,) = await receive(client, invisible_s=10)
    await rocketmq.advance(seconds=11)
    (second,) = await receive(client)
    assert second.system_properties.delivery_attempt == 2
    assert second.system_properties.message_id == first.system_properties.message_id
    assert await ack(client, first, second) == [api.INVALID_RECEIPT_HANDLE, api.OK]


async def test_a_longer_invisible_time_counts_from_now_under_a_new_handle(rocketmq: RocketMQ, client: ApiClient) -> None:
    await client.send("orders", b"hello")
    (message,) = await receive(client, invisible_s=10)
    await rocketmq.advance(seconds=5)
    changed = await after(client, "ChangeInvisibleDuration", message, invisible_duration=seconds(60))
    assert changed.status.code == api.OK
    await rocketmq.advance(seconds=30)
    assert not await receive(client)
    assert await ack(client, message) == [api.INVALID_RECEIPT_HANDLE]
    message.system_properties.receipt_handle = changed.receipt_handle
    assert await ack(client, message) == [api.OK]


async def test_a_message_goes_to_the_dead_letters_when_its_consumer_says_so(rocketmq: RocketMQ, client: ApiClient) -> None:
    await client.send("orders", b"hello")
    (message,) = await receive(client)
    forwarded = await after(client, "ForwardMessageToDeadLetterQueue", message)
    assert forwarded.status.code == api.OK
    assert [dead.body for dead in await rocketmq.messages(topics.dead_letter_topic("group"))] == [b"hello"]
    await rocketmq.advance(minutes=1)
    assert not await receive(client)


async def test_a_call_waits_for_a_message(client: ApiClient) -> None:
    await client.send("orders", b"first", message_id="id-1")
    assert await ack(client, *await receive(client)) == [api.OK]
    waiting = asyncio.create_task(receive(client, poll_s=20))
    while not (await client.send("orders", b"second", message_id="id-2")).entries:
        pass
    assert [message.body for message in await waiting] == [b"second"]


async def test_a_filter_passes_its_tags_alone(client: ApiClient) -> None:
    for tag in ("red", "blue"):
        await client.send("orders", tag.encode(), message_id=tag, tag=tag)
    found = await receive(client, filter_expression=api.FilterExpression(type=api.TAG, expression="blue || green"))
    assert [message.body for message in found] == [b"blue"]


async def test_a_push_consumer_keeps_its_message_as_long_as_it_is_there(rocketmq: RocketMQ, client: ApiClient) -> None:
    await client.send("orders", b"hello")
    telemetry = await push_consumer(client)
    (message,) = await receive(client, auto_renew=True)
    async with connected(rocketmq.grpc_endpoint, x_mq_client_id="client-2") as other:
        await living(rocketmq, client, minutes=5)
        assert not await receive(other)
        telemetry.end()
        while (await client.call("Heartbeat", group=GROUP, client_type=api.PUSH_CONSUMER)).status.code == api.OK:
            pass  # the broker has not heard of the end yet
        await rocketmq.advance(minutes=2)
        assert [again.body for again in await receive(other)] == [b"hello"]
    assert await ack(client, message) == [api.INVALID_RECEIPT_HANDLE]


async def test_a_renewed_message_is_acknowledged_by_the_handle_that_its_client_knows(
    rocketmq: RocketMQ, client: ApiClient
) -> None:
    await client.send("orders", b"hello")
    await push_consumer(client)
    (message,) = await receive(client, auto_renew=True)
    await living(rocketmq, client, minutes=5)
    assert await ack(client, message) == [api.OK]
    await rocketmq.advance(minutes=5)
    assert not await receive(client)


async def test_a_consumer_of_the_old_kind_gets_what_a_producer_of_the_new_kind_sends(
    rocketmq: RocketMQ, client: ApiClient
) -> None:
    got: list[bytes] = []

    def listen(messages: list[MessageExt], context: object) -> ConsumeStatus:
        got.extend(message.body for message in messages)
        return ConsumeStatus.CONSUME_SUCCESS

    await client.send("orders", b"hello")
    await rocketmq.consumer("old", "orders", listen)
    await rocketmq.wait_until(lambda: got == [b"hello"])


@pytest.mark.parametrize("name", ["AckMessage", "ChangeInvisibleDuration", "ForwardMessageToDeadLetterQueue"])
async def test_a_handle_of_nobody_is_refused_in_words(client: ApiClient, name: str) -> None:
    await client.send("orders", b"hello")
    fields: dict[str, Any] = {"receipt_handle": "nonsense", "message_id": "id"}
    fields = {"entries": [fields]} if name == "AckMessage" else fields
    response = await client.call(name, group=GROUP, topic=ORDERS, **fields)
    assert response.status.code == api.INVALID_RECEIPT_HANDLE


async def test_a_refused_handle_says_so_by_the_name_of_its_code(client: ApiClient) -> None:
    await client.send("orders", b"hello")
    (message,) = await receive(client)
    assert await ack(client, message) == [api.OK]
    changed = await after(client, "ChangeInvisibleDuration", message, invisible_duration=seconds(30))
    assert changed.status.message.startswith("INVALID_RECEIPT_HANDLE: message 0 of queue")


@pytest.mark.parametrize("invisible_s", [0, 9.999])
async def test_a_call_asks_for_ten_seconds_of_invisible_time_at_least(client: ApiClient, invisible_s: float) -> None:
    await client.send("orders", b"hello")
    status = await refused(client, invisible_duration=seconds(invisible_s))
    assert (status.code, status.message) == (
        api.ILLEGAL_INVISIBLE_TIME,
        f"the invisibleTime is too small. min is 10000 ms, not {int(invisible_s * 1000)}",
    )
    (message,) = await receive(client, invisible_s=10)
    changed = await after(client, "ChangeInvisibleDuration", message, invisible_duration=seconds(invisible_s))
    assert changed.status.code == api.OK


async def test_a_client_that_names_no_polling_time_is_answered_half_a_request_timeout_before_its_deadline(
    rocketmq: RocketMQ, client: ApiClient
) -> None:
    await client.send("orders", b"hello")
    assert await ack(client, *await receive(client)) == [api.OK]
    telemetry = client.telemetry()
    settings = client.consumer_settings(api.SIMPLE_CONSUMER, "orders")
    settings.request_timeout.FromSeconds(100)
    await telemetry.settle(settings)
    call = client.channel.unary_stream(SERVICE + "ReceiveMessage")(
        service.ReceiveMessageRequest(
            group=GROUP, message_queue=api.MessageQueue(topic=ORDERS, id=-1), batch_size=1, invisible_duration=seconds(10)
        ).SerializeToString(),
        metadata=client.metadata,
        timeout=65,
    )
    serving = rocketmq._broker._serving
    assert serving is not None
    await rocketmq.wait_until(lambda: serving.popping.waiting.count == 1)
    due_ms = serving.popping.waiting.next_due_ms()
    assert due_ms is not None
    assert 0 < due_ms - serving.context.clock.steady_ms() <= 15_000
    await rocketmq.advance(seconds=15)
    statuses = [service.ReceiveMessageResponse.FromString(data).status.code async for data in call]
    assert statuses[0] == api.MESSAGE_NOT_FOUND


@pytest.mark.parametrize("invisible_s", [-1, 12 * 3600 + 1])
async def test_an_impossible_invisible_time_is_refused_and_the_handle_stays_good(client: ApiClient, invisible_s: float) -> None:
    await client.send("orders", b"hello")
    (message,) = await receive(client)
    changed = await after(client, "ChangeInvisibleDuration", message, invisible_duration=seconds(invisible_s))
    assert changed.status.code == api.ILLEGAL_INVISIBLE_TIME
    status = await refused(client, message_queue=api.MessageQueue(topic=ORDERS), invisible_duration=seconds(invisible_s))
    assert status.code == api.ILLEGAL_INVISIBLE_TIME
    assert f"the invisibleTime is too {'small' if invisible_s < 0 else 'large'}" in status.message
    assert await ack(client, message) == [api.OK]


async def test_a_filter_that_the_broker_does_not_take_is_refused_by_its_own_code(client: ApiClient) -> None:
    await client.send("orders", b"hello")
    for kind, expression in ((api.SQL, "price > 10"), (api.TAG, "||")):
        unusable = api.FilterExpression(type=kind, expression=expression)
        status = await refused(client, message_queue=api.MessageQueue(topic=ORDERS), filter_expression=unusable)
        assert status.code == api.ILLEGAL_FILTER_EXPRESSION, status.message


async def test_a_topic_that_a_send_may_make_is_waited_for(rocketmq: RocketMQ, client: ApiClient) -> None:
    assert not await receive(client, poll_s=0.1)


async def refused(client: ApiClient, **fields: Any) -> api.Status:
    """Returns the status of a refused call, which gets no message."""
    named = {"group": GROUP, "message_queue": api.MessageQueue(topic=ORDERS, id=-1), "invisible_duration": seconds(30)}
    (answer,) = await client.stream("ReceiveMessage", **{**named, **fields})
    status: api.Status = answer.status
    return status


async def test_a_group_that_acknowledges_nothing_is_refused_in_words(rocketmq: RocketMQ, client: ApiClient) -> None:
    await client.send("orders", b"hello")
    serving = rocketmq._broker._serving
    assert serving is not None
    for queue_id in range(10):
        entry = PopEntry("group", "orders", 100 + queue_id, 0, 0, list(range(10_000)), 1 << 42, 1000)
        serving.popping.check_points.hidden.hide(CheckPoint(entry, -1 - queue_id))
    status = await refused(client, long_polling_timeout=seconds(5))
    assert status.code == api.TOO_MANY_REQUESTS
    assert "too many unacknowledged messages in topic orders: group group has 100000" in status.message
    assert [message.body for message in await receive(client, group=api.Resource(name="other"))] == [b"hello"]


async def test_a_client_has_a_share_of_the_calls_that_wait(
    rocketmq: RocketMQ, client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.send("orders", b"first", message_id="id-1")
    assert await ack(client, *await receive(client)) == [api.OK]
    monkeypatch.setattr(waiting_pops, "MAX_OF_AN_OWNER", 1)
    first = asyncio.create_task(receive(client, poll_s=20))
    serving = rocketmq._broker._serving
    assert serving is not None
    await rocketmq.wait_until(lambda: serving.popping.waiting.count == 1)
    assert (await refused(client, long_polling_timeout=seconds(20))).code == api.TOO_MANY_REQUESTS
    async with connected(rocketmq.grpc_endpoint, x_mq_client_id="client-2") as other:
        second = asyncio.create_task(receive(other, poll_s=20))
        await rocketmq.wait_until(lambda: serving.popping.waiting.count == 2)
        await client.send("orders", b"more", message_id="more-0")
        await asyncio.wait({first, second}, return_when=asyncio.FIRST_COMPLETED)
        await client.send("orders", b"more", message_id="more-1")
        assert [len(found) for found in await asyncio.gather(first, second)] == [1, 1]


async def test_an_attempt_id_longer_than_any_clients_is_refused(client: ApiClient) -> None:
    await client.send("orders", b"hello")
    status = await refused(client, attempt_id="a" * 256)
    assert (status.code, status.message) == (api.BAD_REQUEST, "attempt id too long: 256 characters, at most 255")


async def test_a_handle_of_a_message_that_nobody_received_is_refused(client: ApiClient) -> None:
    await client.send("orders", b"hello")
    (message,) = await receive(client)
    handle = message.system_properties.receipt_handle
    message.system_properties.receipt_handle = f"{handle.rpartition(' ')[0]} 99"
    assert await ack(client, message) == [api.INVALID_RECEIPT_HANDLE]
    changed = await after(client, "ChangeInvisibleDuration", message, invisible_duration=seconds(30))
    assert changed.status.code == api.INVALID_RECEIPT_HANDLE
    message.system_properties.receipt_handle = handle
    assert await ack(client, message) == [api.OK]


async def test_a_group_and_a_topic_with_long_names_receive_what_was_not_acknowledged(
    rocketmq: RocketMQ, client: ApiClient
) -> None:
    topic, group = api.Resource(name="t" * 100), api.Resource(name="g" * 60)
    await client.send(topic.name, b"hello")
    for attempt in (1, 2, 3):
        (message,) = await receive(client, group=group, topic=topic, invisible_s=10)
        assert (message.topic.name, message.body, message.system_properties.delivery_attempt) == (topic.name, b"hello", attempt)
        await rocketmq.advance(seconds=11)
