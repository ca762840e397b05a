"""Tests of the gRPC API for clients: routes, settings, accounts, other protocols, and damaged bytes."""

import asyncio
import hmac
import logging
import random
from pathlib import Path

import grpc
import pytest

from rocketmq_broker.proxy.protos import definition_pb2 as api
from rocketmq_broker.proxy.protos import service_pb2 as service
from rocketmq_broker.testing import RocketMQ
from tests.certificates import Authority
from tests.component.proxy.api_client import ApiClient, connected

DAMAGED = 300
UNARY = [
    "QueryRoute", "QueryAssignment", "Heartbeat", "SendMessage", "EndTransaction", "AckMessage", "ChangeInvisibleDuration",
    "ForwardMessageToDeadLetterQueue", "RecallMessage", "SyncLiteSubscription", "NotifyClientTermination",
]  # fmt: skip


async def test_a_route_names_the_address_by_which_the_client_came(client: ApiClient) -> None:
    endpoints = api.Endpoints(scheme=api.DOMAIN_NAME, addresses=[api.Address(host="proxy.example", port=80)])
    response = await client.call("QueryRoute", topic=api.Resource(name="orders"), endpoints=endpoints)
    assert response.status.code == api.OK
    assert [queue.id for queue in response.message_queues] == [0, 1, 2, 3]
    assert all(queue.broker.endpoints == endpoints for queue in response.message_queues)
    assert set(response.message_queues[0].accept_message_types) == {api.NORMAL, api.FIFO, api.DELAY, api.TRANSACTION}


async def test_an_assignment_has_all_queues_in_one(client: ApiClient) -> None:
    response = await client.call(
        "QueryAssignment", topic=api.Resource(name="orders"), group=api.Resource(name="group"), endpoints=client.endpoints
    )
    assert [assigned.message_queue.id for assigned in response.assignments] == [-1]
    assert response.assignments[0].message_queue.broker.endpoints == client.endpoints


async def test_a_topic_of_the_brokers_own_has_no_route(client: ApiClient) -> None:
    for name in ("RMQ_SYS_TRANS_HALF_TOPIC", "SCHEDULE_TOPIC_XXXX", "rmq_sys_POP_LOG_TOPIC"):
        response = await client.call("QueryRoute", topic=api.Resource(name=name), endpoints=client.endpoints)
        assert response.status.code == api.ILLEGAL_TOPIC


@pytest.mark.parametrize(
    ("topic", "group", "code"),
    [
        ("", "group", api.ILLEGAL_TOPIC),
        (" ", "group", api.ILLEGAL_TOPIC),
        ("no topic's name", "group", api.ILLEGAL_TOPIC),
        ("x" * 128, "group", api.ILLEGAL_TOPIC),
        ("%RETRY%", "group", api.ILLEGAL_TOPIC),
        ("orders", "", api.ILLEGAL_CONSUMER_GROUP),
        ("orders", "a b", api.ILLEGAL_CONSUMER_GROUP),
        ("orders", "x" * 300, api.ILLEGAL_CONSUMER_GROUP),
        ("orders", "CID_RMQ_SYS_TRANS", api.ILLEGAL_CONSUMER_GROUP),
    ],
)
async def test_an_illegal_name_is_refused_by_its_own_code_in_each_call(
    client: ApiClient, topic: str, group: str, code: api.Code
) -> None:
    names = {"topic": api.Resource(name=topic), "group": api.Resource(name=group)}
    entry = service.AckMessageEntry(message_id="id", receipt_handle="handle")
    answers = [
        await client.call("QueryAssignment", **names),
        await client.call("AckMessage", entries=[entry], **names),
        await client.call("ChangeInvisibleDuration", **names),
        await client.call("ForwardMessageToDeadLetterQueue", **names),
        *await client.stream(
            "ReceiveMessage", group=names["group"], message_queue=api.MessageQueue(topic=names["topic"]), auto_renew=True
        ),
    ]
    if code == api.ILLEGAL_TOPIC:
        answers.append(await client.call("QueryRoute", topic=names["topic"]))
        answers.append(await client.call("EndTransaction", topic=names["topic"], resolution=api.COMMIT))
        answers.append(await client.send(topic, b"hello"))
    assert [api.Code.Name(answer.status.code) for answer in answers] == [api.Code.Name(code)] * len(answers)
    settings = client.consumer_settings(api.PUSH_CONSUMER, topic, group=group)
    settings.subscription.subscriptions[0].expression.SetInParent()
    with pytest.raises(grpc.aio.AioRpcError) as ended:
        await client.telemetry().settle(settings)
    assert ended.value.code() == grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(("language", "is_on"), [("PYTHON", True), ("JAVA", False)])
async def test_settings_come_back_with_a_metric_as_the_client_needs_it(rocketmq: RocketMQ, language: str, is_on: bool) -> None:
    async with connected(rocketmq.grpc_endpoint, x_mq_language=language) as client:
        publishing = api.Publishing(topics=[api.Resource(name="orders")])
        given = api.Settings(client_type=api.PRODUCER, access_point=client.endpoints, publishing=publishing)
        settings = await client.telemetry().settle(given)
    assert settings.HasField("metric")
    assert (settings.metric.on, settings.metric.endpoints) == (is_on, client.endpoints)
    assert settings.publishing.max_body_size == 4 * 1024 * 1024
    assert settings.backoff_policy.max_attempts == 3


async def test_a_consumer_gets_its_group_s_attempts_and_pauses(client: ApiClient) -> None:
    settings = await client.telemetry().settle(client.consumer_settings(api.PUSH_CONSUMER, "orders"))
    assert settings.backoff_policy.max_attempts == 17
    assert [pause.seconds for pause in settings.backoff_policy.customized_backoff.next][:2] == [10, 30]
    assert not settings.subscription.fifo


async def test_a_heartbeat_without_settings_is_told_so_and_later_keeps_the_client(client: ApiClient) -> None:
    assert (await client.call("Heartbeat", client_type=api.PRODUCER)).status.code == api.UNRECOGNIZED_CLIENT_TYPE
    await client.producer("orders")
    assert (await client.call("Heartbeat", client_type=api.PRODUCER)).status.code == api.OK
    assert (await client.call("NotifyClientTermination")).status.code == api.OK
    assert (await client.call("NotifyClientTermination")).status.code == api.UNRECOGNIZED_CLIENT_TYPE


async def test_a_farewell_after_the_end_of_the_telemetry_is_taken_once(client: ApiClient) -> None:
    telemetry = await client.producer("orders")
    await telemetry.finish()
    assert (await client.call("NotifyClientTermination")).status.code == api.OK
    assert (await client.call("NotifyClientTermination")).status.code == api.UNRECOGNIZED_CLIENT_TYPE


async def test_a_farewell_beside_the_end_of_the_telemetry_is_taken(client: ApiClient) -> None:
    for _ in range(30):
        telemetry = await client.producer("orders")
        farewell = asyncio.create_task(client.call("NotifyClientTermination"))
        telemetry.end()
        assert (await farewell).status.code == api.OK


@pytest.mark.parametrize("group", ["", " ", "a b", "CID_RMQ_SYS_TRANS"])
async def test_a_consumer_keeps_and_leaves_a_group_by_a_legal_name(client: ApiClient, group: str) -> None:
    settings = client.consumer_settings(api.SIMPLE_CONSUMER)
    await client.telemetry().settle(settings)
    for name in ("Heartbeat", "NotifyClientTermination"):
        assert (await client.call(name, group=api.Resource(name=group))).status.code == api.ILLEGAL_CONSUMER_GROUP
    assert (await client.call("NotifyClientTermination", group=settings.subscription.group)).status.code == api.OK


async def test_what_is_not_there_says_so(client: ApiClient) -> None:
    for name in ("RecallMessage", "SyncLiteSubscription", "UpdateOffset", "GetOffset", "QueryOffset"):
        assert (await client.call(name)).status.code == api.NOT_IMPLEMENTED
    assert [answer.status.code for answer in await client.stream("PullMessage")] == [api.UNSUPPORTED]


async def test_a_client_without_an_id_is_told_so(rocketmq: RocketMQ) -> None:
    async with connected(rocketmq.grpc_endpoint, x_mq_client_id="") as client:
        assert (await client.call("QueryRoute")).status.code == api.CLIENT_ID_REQUIRED


async def test_a_client_of_the_other_protocol_gets_a_sentence_in_the_log_and_an_end(
    rocketmq: RocketMQ, caplog: pytest.LogCaptureFixture
) -> None:
    host, port = str(rocketmq.grpc_endpoint).split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"\x00\x00\x00\x76\x00\x00\x00\x72{}")
    assert await reader.read() == b""
    writer.close()
    assert "it does not use gRPC, but this is grpcServerPort" in caplog.text


async def test_gRPC_on_the_other_port_gets_a_sentence_in_the_log_and_an_end(
    rocketmq: RocketMQ, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(rocketmq.broker_addr) as client:
        with pytest.raises(grpc.aio.AioRpcError):
            await client.call("QueryRoute")
    assert "the peer uses HTTP instead of RocketMQ's remoting protocol" in caplog.text


async def test_damaged_messages_get_answers_and_no_line_in_the_log(client: ApiClient, caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(5)
    whole = service.SendMessageRequest(
        messages=[
            api.Message(
                topic=api.Resource(name="orders"),
                body=b"hello",
                user_properties={"x": "y"},
                system_properties=api.SystemProperties(message_id="id", keys=["a"], message_type=api.TRANSACTION),
            )
        ]
    ).SerializeToString()
    caplog.set_level(logging.WARNING)
    for _ in range(DAMAGED):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 8)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        name = chance.choice(UNARY)
        answer = getattr(service, f"{name}Response").FromString(
            await client.bytes(name, bytes(data[: chance.randint(0, len(data))]))
        )
        assert answer.status.code not in (api.CODE_UNSPECIFIED, api.INTERNAL_ERROR, api.INTERNAL_SERVER_ERROR), name
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize(("mode", "takes_plain_text"), [("permissive", True), ("enforcing", False)])
async def test_tls_is_that_of_the_other_port(
    tmp_path: Path, mode: str, takes_plain_text: bool, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority(tmp_path / "authority")
    certificate, trusted = authority.sign("broker"), authority.cert_path.read_bytes()
    settings = {
        "grpcServerPort": 0,
        "tls.server.mode": mode,
        "tls.server.certPath": certificate.cert_path,
        "tls.server.keyPath": certificate.key_path,
        "tls.test.mode.enable": False,
    }
    async with RocketMQ(settings) as rocketmq:
        async with connected(rocketmq.grpc_endpoint, authority=trusted) as client:
            assert (await client.send("orders", b"by TLS")).status.code == api.OK
        async with connected(rocketmq.grpc_endpoint) as client:
            if takes_plain_text:
                assert (await client.send("orders", b"in plain text")).status.code == api.OK
            else:
                with pytest.raises(grpc.aio.AioRpcError):
                    await client.send("orders", b"in plain text")
                assert "TLS" in caplog.text
        bodies = {message.body for message in await rocketmq.messages("orders")}
    assert bodies == ({b"by TLS", b"in plain text"} if takes_plain_text else {b"by TLS"})


def signed(secret: str, access_key: str = "the-shop", date: str = "20260101T000000Z") -> dict[str, str]:
    signature = hmac.new(secret.encode(), date.encode(), "sha1").hexdigest()
    return {
        "x_mq_date_time": date,
        "authorization": f"MQv2-HMAC-SHA1 Credential={access_key}, SignedHeaders=x-mq-date-time, Signature={signature}",
    }


async def test_accounts_count_as_on_the_other_port(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "plain_acl.yml").write_text(
        "accounts:\n- accessKey: the-shop\n  secretKey: the secret of the shop\n  topicPerms: [orders=PUB]\n"
    )
    settings = {"grpcServerPort": 0, "aclEnable": True, "rocketmqHome": tmp_path}
    async with RocketMQ(settings, store=tmp_path / "store") as rocketmq:
        codes = []
        for topic, metadata in [
            ("orders", signed("the secret of the shop")),
            ("others", signed("the secret of the shop")),
            ("orders", signed("another secret")),
            ("orders", signed("the secret of the shop", "nobody")),
            ("orders", {"authorization": "nonsense"}),
            ("orders", {}),
        ]:
            async with connected(rocketmq.grpc_endpoint, **metadata) as client:
                codes.append((await client.send(topic, b"hello")).status.code)
        assert codes == [api.OK, api.FORBIDDEN, *[api.UNAUTHORIZED] * 4]
