"""Tests of RocketMQ 5's producers, whose messages are stored, delayed, committed or rolled back like those of other producers."""

import pytest

from rocketmq_broker.message import properties as props
from rocketmq_broker.proxy.connections import session
from rocketmq_broker.proxy.protos import definition_pb2 as api
from rocketmq_broker.testing import RocketMQ
from tests.component.proxy.api_client import ApiClient, connected


async def test_a_message_is_stored_with_all_that_the_client_gave_it(rocketmq: RocketMQ, client: ApiClient) -> None:
    system = api.SystemProperties(message_id="id-1", tag="red", keys=["a", "b"], trace_context="trace")
    message = api.Message(topic=api.Resource(name="orders"), body=b"hello", system_properties=system, user_properties={"x": "y"})
    response = await client.call("SendMessage", messages=[message])
    assert response.status.code == api.OK
    (entry,) = response.entries
    assert (entry.message_id, entry.transaction_id, entry.offset) == ("id-1", "id-1", 0)
    (stored,) = await rocketmq.messages("orders")
    assert (stored.body, stored.tags, stored.keys, stored.transaction_id) == (b"hello", "red", ("a", "b"), "id-1")
    assert {name: stored.properties[name] for name in ("x", "TRACE_CONTEXT")} == {"x": "y", "TRACE_CONTEXT": "trace"}
    assert stored.born_host.startswith("127.0.0.1:")


async def test_messages_of_a_call_have_a_result_each(client: ApiClient) -> None:
    def message(number: int, **system: object) -> api.Message:
        properties = api.SystemProperties(message_id=f"id-{number}", **system)
        return api.Message(topic=api.Resource(name="orders"), body=b"hello", system_properties=properties)

    response = await client.call("SendMessage", messages=[message(1), message(2, tag="a|b"), message(3)])
    assert response.status.code == api.MULTIPLE_RESULTS
    assert [entry.status.code for entry in response.entries] == [api.OK, api.ILLEGAL_MESSAGE_TAG, api.OK]


async def test_messages_of_a_group_come_into_one_queue_in_order(rocketmq: RocketMQ, client: ApiClient) -> None:
    for number in range(8):
        response = await client.send("orders", b"%d" % number, message_id=f"id-{number}", message_group="customer-1")
        assert response.status.code == api.OK
    stored = await rocketmq.messages("orders")
    assert {message.queue_id for message in stored} == {stored[0].queue_id}
    assert [message.body for message in sorted(stored, key=lambda message: message.queue_offset)] == [b"%d" % n for n in range(8)]


async def test_a_delayed_message_comes_when_it_is_due_and_not_before(rocketmq: RocketMQ, client: ApiClient) -> None:
    timestamp = api.SystemProperties().delivery_timestamp
    timestamp.FromMilliseconds(rocketmq.time.wall_ns() // 1_000_000 + 4_000)
    response = await client.send("orders", b"later", delivery_timestamp=timestamp)
    assert response.status.code == api.OK
    await rocketmq.advance(seconds=2)
    assert not await rocketmq.messages("orders")
    await rocketmq.advance(seconds=4)
    assert [message.body for message in await rocketmq.messages("orders")] == [b"later"]


@pytest.mark.parametrize(("resolution", "is_committed"), [(api.COMMIT, True), (api.ROLLBACK, False)])
async def test_a_transaction_ends_as_the_client_decides(
    rocketmq: RocketMQ, client: ApiClient, resolution: api.TransactionResolution, is_committed: bool
) -> None:
    entry = (await client.send("orders", b"tx", message_type=api.TRANSACTION)).entries[0]
    assert not await rocketmq.messages("orders")
    assert await client.end_transaction(entry, resolution, source=api.SOURCE_CLIENT) == api.OK
    assert [message.body for message in await rocketmq.messages("orders")] == ([b"tx"] if is_committed else [])


async def test_a_transaction_whose_decision_was_lost_is_checked_over_telemetry(rocketmq: RocketMQ, client: ApiClient) -> None:
    telemetry = await client.producer("orders")
    sent = (await client.send("orders", b"tx", message_type=api.TRANSACTION, tag="red")).entries[0]
    await rocketmq.advance(seconds=3)
    asked = (await telemetry.next()).recover_orphaned_transaction_command
    assert (asked.transaction_id, asked.message.body) == (sent.transaction_id, b"tx")
    assert asked.message.topic.name == "orders"
    system = asked.message.system_properties
    assert (system.message_id, system.tag, system.message_type) == (sent.message_id, "red", api.TRANSACTION)
    assert await client.end_transaction(sent, topic=asked.message.topic, source=api.SOURCE_SERVER_CHECK) == api.OK
    assert [message.body for message in await rocketmq.messages("orders")] == [b"tx"]


async def test_the_double_s_faults_reach_clients_by_grpc(
    rocketmq: RocketMQ, client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_TIMEOUT_MS", 300)
    telemetry = await client.producer("orders")
    sent = (await client.send("orders", b"tx", message_type=api.TRANSACTION)).entries[0]
    with rocketmq.hold_check_backs():
        await rocketmq.advance(seconds=3)
        assert "held" in rocketmq.timeline(sent.message_id)
    asked = (await telemetry.next()).recover_orphaned_transaction_command
    assert asked.transaction_id == sent.transaction_id
    rocketmq.lose_next_answer()
    unanswered = await client.send("orders", b"plain")
    assert unanswered.entries[0].status.code == api.PROXY_TIMEOUT
    assert [message.body for message in await rocketmq.messages("orders")] == [b"plain"]


async def test_a_client_whose_telemetry_ended_is_asked_no_more(rocketmq: RocketMQ, client: ApiClient) -> None:
    telemetry = await client.producer("orders")
    await client.send("orders", b"tx", message_type=api.TRANSACTION)
    telemetry.end()
    async with connected(rocketmq.grpc_endpoint, x_mq_client_id="client-2") as other:
        others = await other.producer("orders")
        await rocketmq.advance(seconds=3)
        assert (await others.next()).recover_orphaned_transaction_command.message.body == b"tx"


async def test_a_decision_counts_after_a_restart_of_the_broker(rocketmq: RocketMQ, client: ApiClient) -> None:
    sent = (await client.send("orders", b"tx", message_type=api.TRANSACTION)).entries[0]
    endpoint = rocketmq.grpc_endpoint
    await rocketmq.crash()
    await rocketmq.restart()
    assert rocketmq.grpc_endpoint == endpoint
    async with connected(endpoint) as again:
        assert await again.end_transaction(sent) == api.OK
    assert [message.body for message in await rocketmq.messages("orders")] == [b"tx"]


async def test_a_forged_transaction_id_is_refused_in_words(rocketmq: RocketMQ, client: ApiClient) -> None:
    sent = (await client.send("orders", b"tx", message_type=api.TRANSACTION)).entries[0]
    for forged in ({"transaction_id": "nonsense"}, {"transaction_id": "id/1/1"}, {"topic": api.Resource(name="others")}):
        assert await client.end_transaction(sent, **forged) == api.INVALID_TRANSACTION_ID
    assert await client.end_transaction(sent, message_id="x" * 600_000) == api.ILLEGAL_MESSAGE_ID
    assert not await rocketmq.messages("orders")


async def test_the_property_that_delays_the_first_check_is_kept(rocketmq: RocketMQ, client: ApiClient) -> None:
    system = api.SystemProperties(message_id="id-1", message_type=api.TRANSACTION)
    system.orphaned_transaction_recovery_duration.FromSeconds(60)
    message = api.Message(topic=api.Resource(name="orders"), body=b"tx", system_properties=system)
    telemetry = await client.producer("orders")
    await client.call("SendMessage", messages=[message])
    await rocketmq.advance(seconds=30)
    (pending,) = await rocketmq.pending()
    assert pending.checks == 0
    await rocketmq.advance(seconds=40)
    named = (await telemetry.next()).recover_orphaned_transaction_command.message.user_properties
    assert props.CHECK_IMMUNITY_TIME_IN_SECONDS not in named
