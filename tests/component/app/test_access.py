"""Tests of a broker with accounts and TLS, and of clients with valid and invalid keys."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rocketmq_broker.acl.needs import ACCOUNT_CODES, ADMIN_CODES, FINDERS
from rocketmq_broker.app import Broker, StartError
from rocketmq_broker.client import (
    BrokerError,
    ClientError,
    ClientTls,
    ConsumeContext,
    ConsumeFromWhere,
    ConsumeStatus,
    LocalTransactionState,
    Producer,
    PullConsumer,
    PushConsumer,
    SessionCredentials,
    TransactionProducer,
)
from rocketmq_broker.message import Message, MessageExt
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.headers.name_server import DeleteTopicFromNamesrvRequestHeader, GetRouteInfoRequestHeader
from rocketmq_broker.remoting import ConnectionClosed, RemotingClient
from tests.certificates import Authority
from tests.component.app.conftest import small_broker
from tests.e2e.clients import SEND

TOPIC = "orders"
ACCOUNTS = """
accounts:
- accessKey: admin-key
  secretKey: the secret of admins
  admin: true
- accessKey: orders-key
  secretKey: the secret of orders
  topicPerms: [orders=PUB]
- accessKey: credits-key
  secretKey: the secret of credits
  topicPerms: [orders=SUB]
  groupPerms: [credits=SUB]
"""
ADMIN = SessionCredentials("admin-key", "the secret of admins")
ORDERS = SessionCredentials("orders-key", "the secret of orders")
CREDITS = SessionCredentials("credits-key", "the secret of credits")


@dataclass(frozen=True, slots=True)
class Place:
    """The addresses of a broker, and the TLS settings that its clients need."""

    namesrv_addr: str
    vip_addr: str
    tls: ClientTls

    def at(self, credentials: SessionCredentials) -> dict[str, Any]:
        """Returns the settings for a client with these credentials."""
        return {"namesrv_addr": self.namesrv_addr, "tls": self.tls, "credentials": credentials}


def guarded_broker(home: Path, accounts: str | None = ACCOUNTS, **settings: object) -> Broker:
    """Creates a broker with access control. Without `accounts`, it has no account file."""
    (home / "conf").mkdir(parents=True)
    if accounts is not None:
        (home / "conf" / "plain_acl.yml").write_text(accounts)
    intervals = {"transaction_time_out": 100, "transaction_check_interval": 100}
    return small_broker(home / "store", acl_enable=True, rocketmq_home=str(home), **intervals, **settings)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    authority = Authority(tmp_path / "certificates")
    certificate = authority.sign("broker")
    broker = guarded_broker(
        tmp_path,
        tls_server_mode="enforcing",
        tls_server_cert_path=str(certificate.cert_path),
        tls_server_key_path=str(certificate.key_path),
    )
    await broker.start()
    place = Place(broker.name_servers[0], f"127.0.0.1:{broker.identity.port - 2}", ClientTls(trust_cert_path=authority.cert_path))
    admin = Producer("tools", **place.at(ADMIN))
    await admin.start()
    await admin.create_topic(TOPIC, 1)
    await admin.shutdown()
    yield place
    await broker.stop()


class Listener:
    """A transaction listener that returns UNKNOWN, and commits at the check-back."""

    def __init__(self) -> None:
        self.checked: list[str | None] = []

    def execute_local_transaction(self, message: Message, argument: object) -> LocalTransactionState:
        return LocalTransactionState.UNKNOWN

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        self.checked.append(message.keys)
        return LocalTransactionState.COMMIT_MESSAGE


async def test_accounts_do_what_they_may(place: Place) -> None:
    listener, received = Listener(), []
    arrived = asyncio.Event()
    loop = asyncio.get_running_loop()

    def consume(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        received.extend(message.body for message in messages)
        if len(received) == 2:
            loop.call_soon_threadsafe(arrived.set)
        return ConsumeStatus.CONSUME_SUCCESS

    producer = TransactionProducer("order_service", listener, **place.at(ORDERS))
    consumer = PushConsumer("credits", consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, **place.at(CREDITS))
    consumer.subscribe(TOPIC)
    consumer.register_message_listener(consume)
    await producer.start()
    await consumer.start()
    await producer.send(Message(topic=TOPIC, body=b"plain"))
    await producer.send_message_in_transaction(Message(topic=TOPIC, body=b"transactional"), None)
    async with asyncio.timeout(60):
        await arrived.wait()
    assert sorted(received) == [b"plain", b"transactional"]
    assert len(listener.checked) == 1
    await consumer.shutdown()
    await producer.shutdown()


@pytest.mark.parametrize(
    ("credentials", "words"),
    [
        (SessionCredentials("orders-key", "the secret of others"), "Check signature failed for accessKey=orders-key"),
        (SessionCredentials("nobodys-key", "the secret of nobody"), "No acl config for nobodys-key"),
        (CREDITS, "No default permission for topic:orders"),
    ],
)
async def test_who_may_not_send_is_told_why(place: Place, credentials: SessionCredentials, words: str) -> None:
    producer = Producer("anybody", **place.at(credentials))
    await producer.start()
    with pytest.raises(ClientError) as caught:
        await producer.send(Message(topic=TOPIC, body=b"forged"))
    assert words in f"{caught.value} {caught.value.__cause__}"
    await producer.shutdown()
    reader = PullConsumer("credits", **place.at(CREDITS))
    await reader.start()
    (queue,) = await reader.queues(TOPIC)
    assert await reader.max_offset(queue) == 0
    await reader.shutdown()


async def test_who_may_not_read_is_told_why(place: Place) -> None:
    for group, credentials, words in (
        ("credits", ORDERS, "No default permission for"),
        ("others", CREDITS, "No default permission for group:others"),
    ):
        reader = PullConsumer(group, **place.at(credentials))
        await reader.start()
        (queue,) = await reader.queues(TOPIC)
        with pytest.raises(BrokerError, match=words):
            await reader.pull(queue, 0)
        await reader.shutdown()


async def test_a_producer_may_count_what_was_given_up_of_its_messages(place: Place) -> None:
    producer = TransactionProducer("order_service", Listener(), **place.at(ORDERS))
    await producer.start()
    await producer.send(Message(topic=TOPIC, body=b"a route to the broker"))
    assert await producer.count_discarded() == 0
    await producer.shutdown()


async def test_the_vip_channel_lets_in_only_whom_the_other_port_lets_in(place: Place) -> None:
    for tls, credentials, refusal in (
        (place.tls, ORDERS, None),
        (place.tls, CREDITS, "No default permission for topic:orders"),
        (place.tls, None, "No accessKey is configured"),
    ):
        client = RemotingClient(tls=tls, credentials=credentials)
        answer = await client.invoke(place.vip_addr, RequestCode.SEND_MESSAGE_V2, SEND, b"hello", timeout_ms=20_000)
        assert (answer.code == ResponseCode.SUCCESS) is (refusal is None), answer.remark
        assert refusal is None or refusal in (answer.remark or "")
        await client.close()
    plain = RemotingClient(credentials=ORDERS)
    with pytest.raises(ConnectionClosed):
        await plain.invoke(place.vip_addr, RequestCode.SEND_MESSAGE_V2, SEND, b"hello", timeout_ms=20_000)
    await plain.close()


async def test_a_half_message_is_shown_to_nobody_who_may_not_send_to_its_topic(place: Place) -> None:
    stranger, owner = Listener(), Listener()
    strange = TransactionProducer("order_service", stranger, **place.at(CREDITS))
    await strange.start()
    with pytest.raises(ClientError):
        await strange.send(Message(topic=TOPIC, body=b"now it knows the broker, and is online there"))
    producer = TransactionProducer("order_service", owner, **place.at(ORDERS))
    await producer.start()
    for _ in range(5):
        await producer.send_message_in_transaction(Message(topic=TOPIC, body=b"secret"), None)
    await producer.shutdown()
    await asyncio.sleep(1)  # the stranger alone is online now, and the broker looks each 0.1 s
    producer = TransactionProducer("order_service", owner, **place.at(ORDERS))
    await producer.start()
    await producer.send(Message(topic=TOPIC, body=b"now it is online again"))
    async with asyncio.timeout(60):
        while len(owner.checked) < 5:  # noqa: ASYNC110 (the listener tells nobody)
            await asyncio.sleep(0.01)
    assert stranger.checked == []
    await producer.shutdown()
    await strange.shutdown()


@pytest.mark.parametrize(
    ("credentials", "words"),
    [(None, "No accessKey is configured"), (ORDERS, "Need admin permission"), (CREDITS, "Need admin permission"), (ADMIN, None)],
)
async def test_only_an_admin_hides_a_topic_at_the_name_server(
    place: Place, credentials: SessionCredentials | None, words: str | None
) -> None:
    client = RemotingClient(tls=place.tls, credentials=credentials)
    delete = DeleteTopicFromNamesrvRequestHeader(topic=TOPIC)
    answer = await client.invoke(place.namesrv_addr, RequestCode.DELETE_TOPIC_IN_NAMESRV, delete, timeout_ms=20_000)
    route = GetRouteInfoRequestHeader(topic=TOPIC)
    found = await client.invoke(place.namesrv_addr, RequestCode.GET_ROUTEINFO_BY_TOPIC, route, timeout_ms=20_000)
    await client.close()
    if words is None:
        assert (answer.code, found.code) == (ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST)
    else:
        assert words in (answer.remark or "")
        assert found.code == ResponseCode.SUCCESS, "the topic is there still"


async def test_somebody_decided_who_may_ask_each_request_that_a_broker_answers(tmp_path: Path) -> None:
    broker = guarded_broker(tmp_path)
    await broker.start()
    answered = set(broker._dispatcher.codes)
    await broker.stop()
    assert {code for code in answered if not any(code in decided for decided in (FINDERS, ADMIN_CODES, ACCOUNT_CODES))} == set()
    assert len(answered) > 60
    assert answered >= ACCOUNT_CODES
    assert not ACCOUNT_CODES & (ADMIN_CODES | set(FINDERS))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "no such file"),
        ("accounts:\n- accessKey: orders-key\n  secretKey: tiny!\n", "line 2: account 'orders-key': secretKey"),
    ],
)
async def test_with_accounts_that_cannot_be_read_a_broker_does_not_start(tmp_path: Path, text: str | None, words: str) -> None:
    with pytest.raises(StartError) as caught:
        await guarded_broker(tmp_path, text).start()
    assert words in str(caught.value)
    assert "tiny!" not in str(caught.value)


async def test_with_a_certificate_that_cannot_be_read_a_broker_does_not_start(tmp_path: Path) -> None:
    unreadable = {"tls_server_cert_path": "/no/such/cert", "tls_server_key_path": "/no/such/key"}
    with pytest.raises(StartError, match="/no/such/cert: No such file"):
        await guarded_broker(tmp_path, **unreadable).start()
